package stages

import (
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/plan"
	"placer/plan/formats"
)

// maxClimb bounds the evaluations that moving the bounds of stages takes, from one set of
// starts.
const maxClimb = 256

// Nearest returns the best placement of p that t can take and that uses as many devices
// as device, [N], does: for a target of stages the better of the stages that give each
// device as many parts as it has now and of the balanced ones, whose bounds are then
// moved as long as that helps; for others each part on the device of most of it. For a
// target that may have layers or experts on the host, those of device stay there, and where
// nothing else fits as many go there as have to.
func Nearest(ctx context.Context, p *plan.Problem, t formats.Target, device []uint8) (*plan.Outcome, *formats.Split, error) {
	m := newModel(p)
	if t.Ops {
		m = modelOf(p, opParts(p.Graph))
	}
	track := budget.New(ctx, p, t.Name)
	near := t.Nearest(p.Graph, p.Machine, m.parts, device, p.Evaluator.OpSeconds(int(m.order[0])))
	most := near.Device
	if !t.Stages {
		track.Try(near.Spread())
		out, err := track.Outcome()
		return out, near, err
	}
	used := 0
	count := make([]int, len(m.order))
	for i, d := range m.order {
		if slices.Contains(most, d) {
			used++
		}
		for _, x := range most {
			if x == d {
				count[i]++
			}
		}
	}
	used = max(used, 1)
	slices.SortStableFunc(count, func(a, b int) int { // those with parts first
		if (a > 0) != (b > 0) && a > 0 {
			return -1
		} else if (a > 0) != (b > 0) {
			return 1
		}
		return 0
	})
	kept := make([]int, 0, used) // as many parts a stage as the devices have
	at := 0
	for _, n := range count[:used] {
		kept = append(kept, at)
		at += n
	}
	starts := []cut{m.fit(&t, cut{bounds: m.balanced(used)}), m.fit(&t, cut{bounds: kept})}
	if own, ok := m.cutOf(near); ok && t.Host {
		starts = slices.Insert(starts, 0, own)
	}
	best := m.split(m.settle(track, &t, used, starts...))
	out, err := track.Outcome()
	if err != nil {
		return nil, nil, err
	}
	out.Device = best.Spread() // the best of what is legal
	return out, best, nil
}

// fit moves the bounds to where t allows them: of the stages of a stack of blocks none
// begins outside of it, but that of the output where t may have it alone.
func (m *model) fit(t *formats.Target, c cut) cut {
	if m.legal(t, c) {
		return c
	}
	first, last := m.stack()
	if first < 0 {
		return cut{bounds: c.bounds[:1]}
	}
	output := m.output(t)
	last = max(last, output)
	out := []int{0}
	if t.Host && m.host >= 0 && c.bounds[0] > first {
		out[0] = min(c.bounds[0], last)
	}
	for _, b := range c.bounds[1:] {
		b = max(b, first+1, out[len(out)-1]+1)
		if b > last && output > out[len(out)-1] {
			b = output
		}
		if b <= last {
			out = append(out, b)
		}
	}
	c.bounds = out
	c.experts = c.experts[:min(len(c.experts), len(out))]
	return c
}

// stack returns the first and the last block, -1 where there is none.
func (m *model) stack() (first, last int) {
	first, last = -1, -1
	for k, x := range m.parts.List {
		if x.Layer >= 0 {
			if first < 0 {
				first = k
			}
			last = k
		}
	}
	return first, last
}

// output returns the first part behind the stack of blocks where t may have what is there on
// a device of its own, 0 elsewhere.
func (m *model) output(t *formats.Target) int {
	_, last := m.stack()
	if !t.Output || last < 0 || last+1 == len(m.parts.List) {
		return 0
	}
	return last + 1
}

// settle climbs from the best of the starts. Where that does not fit with nothing on the
// host, and t may have layers there, it climbs from each cut in so many stages that has as much there as it must.
func (m *model) settle(track *budget.Tracker, t *formats.Target, stages int, starts ...cut) cut {
	best, score := m.climb(track, t, starts...)
	if t == nil || !t.Host || m.host < 0 || score.Feasible() && !best.spilled() {
		return best
	}
	for _, c := range m.fitting(track, t, stages) {
		if c, x := m.climb(track, t, c); m.legal(t, c) && x.Better(score) {
			best, score = c, x
		}
	}
	return best
}

// climb evaluates the starts and moves single bounds of the best as long as it gets
// better. It returns the best cut and its score.
func (m *model) climb(track *budget.Tracker, t *formats.Target, starts ...cut) (best cut, score plan.Score) {
	most := track.Evaluations() + maxClimb
	try := func(c cut) bool {
		if !m.legal(t, c) {
			return false
		}
		s := track.Try(m.split(c).Spread())
		if best.bounds == nil || s.Better(score) {
			best, score = c.clone(), s
			return true
		}
		return false
	}
	for _, c := range starts {
		if best.bounds == nil || !track.Done() {
			try(c)
		}
	}
	if best.bounds == nil {
		best = cut{bounds: []int{0}}
		try(best)
	}
	for again := true; again && track.Evaluations() < most && !track.Done(); {
		again = false
		m.neighbours(t, &best, func(next cut) {
			if track.Evaluations() < most && !track.Done() && try(next) {
				again = true
			}
		})
	}
	return best, score
}

// neighbours gives visit the cuts in which one bound differs from c's, which may change
// meanwhile.
func (m *model) neighbours(t *formats.Target, c *cut, visit func(cut)) {
	for j := 1; j < len(c.bounds); j++ {
		for _, by := range []int{-1, 1, -4, 4} {
			next := c.clone()
			next.bounds[j] += by
			if next.bounds[j] > next.bounds[j-1] && next.bounds[j] < next.end(m, j) {
				visit(next)
			}
		}
	}
	if t != nil && t.Host && m.host >= 0 {
		m.hostNeighbours(c, visit)
	}
}

// method is a rule that splits a model into stages.
type method struct {
	name   string
	device func(*model) []uint8 // of each part
}

func (r method) Name() string  { return r.name }
func (method) Kind() plan.Kind { return plan.Baseline }

func (r method) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	m := newModel(p)
	return budget.One(ctx, p, r.name, m.parts.Spread(p.Graph, r.device(m)))
}

// best is "layers".
type best struct{}

// Layers is "layers": the best split of the model's blocks into contiguous stages, of
// any number of them: balanced by the dynamic program, then with its bounds moved.
func Layers() plan.Placer { return best{} }

func (best) Name() string    { return "layers" }
func (best) Kind() plan.Kind { return plan.Baseline }

func (best) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	m := newModel(p)
	track := budget.New(ctx, p, "layers")
	var starts []cut
	for s := range min(len(m.order), len(m.parts.List)) {
		starts = append(starts, cut{bounds: m.balanced(s + 1)})
	}
	m.climb(track, nil, starts...)
	return track.Outcome()
}
