package pipedreamplan

import "fmt"

// Plan is stages and what the pipeline takes per minibatch.
type Plan struct {
	Stages []Stage // Replicas are workers of the innermost level
	Costs  []Cost  // of each stage
	// Seconds is the largest entry of Costs, or more where several stages are repeated together
	// at a level: the recurrence synchronises the parameters of all of them as one.
	Seconds float64
}

// maxEntries bounds a level's table.
const maxEntries = 1 << 27

// level is the table of one level: best[span(i,j)][m-1] is the least time of
// layers i..j on at most m of the level's workers.
type level struct {
	Level
	n      int
	whole  bool // spans from layer 0 alone
	best   []float64
	split  []int32 // last layer before the last stage; -1: one stage
	last   []int32 // workers of the last stage
	inside func(i, j int) float64
}

// Solve returns the best plan of c on levels, innermost first.
func Solve(c *Chain, levels []Level) (*Plan, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := validLevels(levels); err != nil {
		return nil, err
	}
	n := c.NumLayers()
	seconds, parameters := prefix(c.Seconds), prefix(c.Parameters)
	inside := func(i, j int) float64 { return seconds[j+1] - seconds[i] }
	var tables []*level
	for k, l := range levels {
		t := &level{Level: l, n: n, whole: k == len(levels)-1, inside: inside}
		if size := float64(t.spans()) * float64(l.Width); size > maxEntries {
			return nil, fmt.Errorf("%d layers are too many for a level of %d workers below another", n, l.Width)
		}
		t.fill(c, parameters)
		inside = func(i, j int) float64 { return t.best[t.at(i, j, l.Width)] }
		tables = append(tables, t)
	}
	top := tables[len(tables)-1]
	p := c.plan(unfold(tables, seat{Stage: Stage{0, n, 1}}, nil))
	p.Seconds = top.best[top.at(0, n-1, top.Width)]
	return p, nil
}

// validLevels reports the first fault.
func validLevels(levels []Level) error {
	if len(levels) == 0 {
		return fmt.Errorf("no workers")
	}
	for k, l := range levels {
		if l.Width < 1 || !(l.Bandwidth > 0) {
			return fmt.Errorf("level %d has %d workers joined by %v bytes a second", k+1, l.Width, l.Bandwidth)
		}
	}
	return nil
}

func prefix(x []float64) []float64 {
	sum := make([]float64, len(x)+1)
	for k, v := range x {
		sum[k+1] = sum[k] + v
	}
	return sum
}

func (t *level) spans() int {
	if t.whole {
		return t.n
	}
	return t.n * t.n
}

func (t *level) at(i, j, m int) int { return (i*t.n+j)*t.Width + m - 1 }

// stage is T(i..j, m).
func (t *level) stage(i, j, m int, parameters []float64) float64 {
	w := parameters[j+1] - parameters[i]
	return max(t.inside(i, j), 2*float64(m-1)*w/t.Bandwidth) / float64(m)
}

// fill computes the table, shorter spans first.
func (t *level) fill(c *Chain, parameters []float64) {
	size := t.spans() * t.Width
	t.best, t.split, t.last = make([]float64, size), make([]int32, size), make([]int32, size)
	starts := t.n
	if t.whole {
		starts = 1
	}
	// The stages that end a span, [L, W] by first layer and workers.
	ends := make([]float64, t.n*t.Width)
	for j := range t.n {
		for s := range j + 1 {
			for m := 1; m <= t.Width; m++ {
				ends[s*t.Width+m-1] = t.stage(s, j, m, parameters)
			}
		}
		for i := range min(starts, j+1) {
			for m := 1; m <= t.Width; m++ {
				k := t.at(i, j, m)
				t.best[k], t.split[k], t.last[k] = ends[i*t.Width+m-1], -1, int32(m)
				if m == 1 {
					continue
				}
				if t.best[k-1] < t.best[k] { // a worker may idle
					t.best[k], t.split[k], t.last[k] = t.best[k-1], t.split[k-1], t.last[k-1]
				}
				for s := i; s < j; s++ {
					transfer := 2 * c.Crossing[s] / t.Bandwidth
					if transfer >= t.best[k] {
						continue
					}
					for own := 1; own < m; own++ {
						v := max(t.best[t.at(i, s, m-own)], transfer, ends[(s+1)*t.Width+own-1])
						if v < t.best[k] {
							t.best[k], t.split[k], t.last[k] = v, int32(s), int32(own)
						}
					}
				}
			}
		}
	}
}

// unfold appends the stages of the layers of s on all workers of the outermost of
// tables, s.Replicas times over.
func unfold(tables []*level, s seat, stages []seat) []seat {
	if len(tables) == 0 {
		return append(stages, s)
	}
	t := tables[len(tables)-1]
	var parts []seat
	for j, m := s.To-1, t.Width; ; {
		k := t.at(s.From, j, m)
		// A table entry that let a worker idle is that of fewer workers.
		for m > 1 && t.best[k-1] == t.best[k] && t.split[k-1] == t.split[k] && t.last[k-1] == t.last[k] {
			m, k = m-1, k-1
		}
		own := int(t.last[k])
		if t.split[k] < 0 {
			parts = append(parts, s.part(t.Level, s.From, j+1, own))
			break
		}
		parts = append(parts, s.part(t.Level, int(t.split[k])+1, j+1, own))
		j, m = int(t.split[k]), m-own
	}
	for k := len(parts) - 1; k >= 0; k-- {
		stages = unfold(tables[:len(tables)-1], parts[k], stages)
	}
	return stages
}
