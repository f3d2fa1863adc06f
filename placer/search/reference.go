package search

import (
	"slices"

	"placer/hw"
	"placer/plan"
)

// Reference is a plan that the best one is held against, under the same tasks.
type Reference struct {
	Method string // where its devices are from
	Score  plan.Score
	plan.Decision
}

// References are the plans that the best row is held against. Where fusion is decided,
// all have it: none, everything that can be fused, or the fusion of a row, whichever is
// best for them.
type References struct {
	// OneDevice is the best plan on a single device.
	OneDevice *Reference
	// Rule is the best of the rules and list schedulers; nil where none ran.
	Rule *Reference
	// Given is the best of the plans that the search was given; nil where there are none.
	Given *Reference
}

// of returns the reference that row x of the first stage counts for; nil for a policy's.
func (r *References) of(x *Row) **Reference {
	switch x.Kind {
	case plan.Baseline:
		return &r.Rule
	case plan.Search: // what else is there before a search
		return &r.Given
	}
	return nil
}

// OneDeviceMethod is the name of the row that a search adds where nothing it found is
// better than one device.
const OneDeviceMethod = "one-device"

// extra returns the rows that the references make: of one device, where nothing in rows is
// better, and of the best rule with fusion, where that is the best of all.
func (r *References) extra(s *searcher, e plan.Evaluator, rows []*Row) (more []*Row) {
	best := rows[choose(s.problem.Graph, rows)]
	add := func(x *Reference, name, note string) {
		row := &Row{Method: name, Kind: plan.Baseline, Evaluations: 0, Decision: x.Decision.Clone(), Notes: []string{note}}
		s.judge(row, e)
		more = append(more, row)
	}
	if x := r.OneDevice; x != nil && x.Score.Overflow <= best.Score.Overflow && (plan.DevicesOf(best.Device) > 1 && tied(x.Score.Value, best.Score.Value) || x.Score.Value*(1+tie) < best.Score.Value) {
		add(x, OneDeviceMethod, "everything on one device, with the best fusion found for it")
		best = more[0]
	}
	for _, x := range []*Reference{r.Given, r.Rule} {
		if x != nil && x.Score.Overflow <= best.Score.Overflow && x.Score.Value*(1+tie) < best.Score.Value {
			add(x, x.Method+"+fusion", "the devices of "+x.Method+" with the best fusion found for them")
			best = more[len(more)-1]
		}
	}
	return more
}

// references finds the plans that the rows are held against, under fusions that follow from
// rules, the rows of the baselines.
func (s *searcher) references(e plan.Evaluator, rules []*Row) (r References) {
	p := s.problem
	n := p.Graph.NumOps()
	fusions := [][]uint8{p.Fusion}
	if p.Decides(plan.Fuse) {
		fusions = append(fusions, slices.Repeat([]uint8{1}, n))
		for _, x := range rules {
			if x.Fusion != nil {
				fusions = append(fusions, x.Fusion)
			}
		}
	}
	for _, d := range s.oneDevice() {
		for _, f := range fusions {
			d.Fusion = f
			consider(&r.OneDevice, OneDeviceMethod, d, e.Evaluate(d))
		}
	}
	best := bestOf(rules)
	for _, x := range rules {
		of := r.of(x)
		if of == nil {
			continue
		}
		consider(of, x.Method, x.Decision, x.Score)
		if p.Decides(plan.Fuse) && x.Fusion == nil {
			d := x.Decision
			d.Fusion = fusions[1]
			consider(of, x.Method, d, e.Evaluate(d))
			if best.Fusion != nil {
				d.Fusion = best.Fusion
				consider(of, x.Method, d, e.Evaluate(d))
			}
		}
	}
	return r
}

// under holds against the rows, too, what r's devices and those of rules take under fusions
// of the rows searched. Under a budget in evaluations nothing counts that would be better
// than all rows (see conclude).
func (r *References) under(s *searcher, e plan.Evaluator, rules, searched []*Row) {
	top := bestOf(append(slices.Clip(rules), searched...))
	try := func(of **Reference, method string, d plan.Decision) {
		x := e.Evaluate(d)
		if s.c.Budget.Evaluations > 0 && (x.Overflow < top.Score.Overflow || x.Overflow == top.Score.Overflow && x.Value*(1+tie) < top.Score.Value) {
			return
		}
		consider(of, method, d, x)
	}
	if !s.problem.Decides(plan.Fuse) {
		return
	}
	for _, d := range s.oneDevice() {
		for _, x := range searched {
			if x.Fusion != nil {
				d.Fusion = x.Fusion
				try(&r.OneDevice, OneDeviceMethod, d)
			}
		}
	}
	if top.Fusion == nil || !slices.Contains(searched, top) {
		return
	}
	for _, x := range rules {
		if of := r.of(x); of != nil && x.Fusion == nil {
			d := x.Decision
			d.Fusion = top.Fusion
			try(of, x.Method, d)
		}
	}
}

// consider makes d, of score x, the reference if it runs and is better.
func consider(of **Reference, method string, d plan.Decision, x plan.Score) {
	if x.Runs() && (*of == nil || x.Better((*of).Score)) {
		*of = &Reference{method, x, d}
	}
}

// oneDevice returns a plan for each kind of device on which everything is on one.
func (s *searcher) oneDevice() (ds []plan.Decision) {
	m := s.problem.Machine
	for d := range m.Devices {
		if !slices.ContainsFunc(m.Devices[:d], func(v hw.Device) bool { return v.SameFigures(&m.Devices[d]) }) {
			ds = append(ds, plan.Decision{Device: slices.Repeat([]uint8{uint8(d)}, s.problem.Graph.NumOps()), Priority: s.problem.Priority})
		}
	}
	return ds
}

// bestOf returns the best of rows, the first of equals, or nil.
func bestOf(rows []*Row) (best *Row) {
	for _, x := range rows {
		if x != nil && (best == nil || x.better(best)) {
			best = x
		}
	}
	return best
}
