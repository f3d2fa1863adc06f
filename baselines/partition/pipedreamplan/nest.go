package pipedreamplan

import "math"

// nesting finds the best cut into stages of given replicas by Solve's recursion:
// a group of stages lies in each of several groups of workers, which divide its
// replicas among them.
type nesting struct {
	c                   *Chain
	levels              []Level
	replicas            []int // of each stage, [S]
	seconds, parameters []float64
	memo                map[nestKey]*nestTable
}

// nestKey names a table: of the stages from stage on, on the layers from layer on,
// with their replicas divided by times, on one group of a level's workers.
type nestKey struct{ level, times, stage, layer int }

// nestTable has a row for each number of stages and of workers of the level that
// they may take; few numbers of workers are possible.
type nestTable struct {
	rows []map[int]*nestRow // [S+1]
}

// nestRow has the least time for layers up to each, and the step to it, [L+1].
type nestRow struct {
	best []float64
	step []nestStep
}

// row returns the row of stages up to b and m workers, with a new one for layers up
// to n where there is none.
func (t *nestTable) row(b, m, n int) *nestRow {
	if r := t.rows[b][m]; r != nil {
		return r
	}
	if t.rows[b] == nil {
		t.rows[b] = map[int]*nestRow{}
	}
	r := &nestRow{make([]float64, n+1), make([]nestStep, n+1)}
	for j := range r.best {
		r.best[j] = math.Inf(1)
	}
	t.rows[b][m] = r
	return r
}

// least returns the row with the least time for stages up to b and layers up to j,
// the one of fewest workers of several, and the workers; nil if there is none.
func (t *nestTable) least(b, j, width int) (least *nestRow, workers int) {
	for m := 1; m <= width; m++ {
		if r := t.rows[b][m]; r != nil && !math.IsInf(r.best[j], 1) && (least == nil || r.best[j] < least.best[j]) {
			least, workers = r, m
		}
	}
	return least, workers
}

// nestStep is the stages and layers where the last part begins, and its workers.
type nestStep struct{ stage, layer, own int32 }

// nest returns the best such plan, nil where the replicas divide in no such way.
func nest(c *Chain, replicas []int, levels []Level) *Plan {
	inner, all := 1, 0
	for _, l := range levels[:len(levels)-1] {
		inner *= l.Width
	}
	for _, m := range replicas {
		all += m
	}
	x := &nesting{c: c, levels: append([]Level(nil), levels...), replicas: replicas, seconds: prefix(c.Seconds), parameters: prefix(c.Parameters), memo: map[nestKey]*nestTable{}}
	top := len(levels) - 1
	x.levels[top].Width = max(levels[top].Width, (all+inner-1)/inner)
	best := x.inside(top, 1, 0, len(replicas), 0, c.NumLayers())
	if math.IsInf(best, 1) {
		return nil
	}
	p := c.plan(x.unfold(top, 1, 0, len(replicas), seat{Stage: Stage{0, c.NumLayers(), 1}}, nil))
	p.Seconds = best
	return p
}

// inside returns the least time of stages [a, b) on layers [i, j) in one group of
// a level, infinite where there is no way; of level -1, on one worker.
func (x *nesting) inside(level, times, a, b, i, j int) float64 {
	if level < 0 {
		if b-a == 1 && x.replicas[a] == times {
			return x.seconds[j] - x.seconds[i]
		}
		return math.Inf(1)
	}
	if r, _ := x.table(nestKey{level, times, a, i}).least(b, j, x.levels[level].Width); r != nil {
		return r.best[j]
	}
	return math.Inf(1)
}

// table fills the table of k, if there is none yet, from fewer stages to more.
func (x *nesting) table(k nestKey) *nestTable {
	if t := x.memo[k]; t != nil {
		return t
	}
	t := &nestTable{rows: make([]map[int]*nestRow, len(x.replicas)+1)}
	t.row(k.stage, 0, x.c.NumLayers()).best[k.layer] = 0
	for a := k.stage; a < len(x.replicas); a++ {
		for m := range x.levels[k.level].Width {
			if r := t.rows[a][m]; r != nil {
				x.extend(t, k, a, m, r)
			}
		}
	}
	x.memo[k] = t
	return t
}

// extend adds one more part to what t has for stages up to a on m workers, the row
// from.
func (x *nesting) extend(t *nestTable, k nestKey, a, m int, from *nestRow) {
	layers, stages := x.c.NumLayers(), len(x.replicas)
	for b := a + 1; b <= stages; b++ {
		for own := 1; own <= x.levels[k.level].Width-m; own++ {
			if !x.divides(k.level, k.times*own, a, b) {
				continue
			}
			to := t.row(b, m+own, layers)
			for i, so := range from.best {
				for j := i + b - a; j <= layers-(stages-b) && !math.IsInf(so, 1); j++ {
					if v := max(so, x.step(k, nestStep{int32(a), int32(i), int32(own)}, b, j)); v < to.best[j] {
						to.best[j], to.step[j] = v, nestStep{int32(a), int32(i), int32(own)}
					}
				}
			}
		}
	}
}

// step returns what the part from s to stages [.., b) and layers [.., j) takes in
// the table of k, with the cut before it.
func (x *nesting) step(k nestKey, s nestStep, b, j int) float64 {
	l, own := x.levels[k.level], float64(s.own)
	w := x.parameters[j] - x.parameters[s.layer]
	inside := x.inside(k.level-1, k.times*int(s.own), int(s.stage), b, int(s.layer), j)
	v := max(inside, 2*(own-1)*w/l.Bandwidth) / own
	if int(s.stage) > k.stage {
		v = max(v, 2*x.c.Crossing[s.layer-1]/l.Bandwidth)
	}
	return v
}

// divides reports whether stages [a, b) with replicas divided by times may fit one
// group of the levels below level.
func (x *nesting) divides(level, times, a, b int) bool {
	room := 1
	for _, l := range x.levels[:level] {
		room *= l.Width
	}
	for _, m := range x.replicas[a:b] {
		room -= m / times
		if m%times != 0 || room < 0 {
			return false
		}
	}
	return level > 0 || b-a == 1 && x.replicas[a] == times
}

// unfold appends the stages [a, b), which lie in s, of the best way that inside
// found.
func (x *nesting) unfold(level, times, a, b int, s seat, seats []seat) []seat {
	if level < 0 {
		return append(seats, s)
	}
	t := x.table(nestKey{level, times, a, s.From})
	_, m := t.least(b, s.To, x.levels[level].Width)
	type part struct {
		a, b int
		seat
	}
	var parts []part
	for to, j := b, s.To; to > a; {
		k := t.rows[to][m].step[j]
		parts = append(parts, part{int(k.stage), to, s.part(x.levels[level], int(k.layer), j, int(k.own))})
		to, j, m = int(k.stage), int(k.layer), m-int(k.own)
	}
	for k := len(parts) - 1; k >= 0; k-- {
		p := parts[k]
		seats = x.unfold(level-1, p.Replicas, p.a, p.b, p.seat, seats)
	}
	return seats
}
