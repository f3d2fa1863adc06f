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
	if x := r.OneDevice; x.Score.Overflow <= best.Score.Overflow && (Devices(best.Device) > 1 && tied(x.Score.Value, best.Score.Value) || x.Score.Value*(1+tie) < best.Score.Value) {
		add(x, OneDeviceMethod, "everything on one device, with the best fusion found for it")
		best = more[0]
	}
	if x := r.Rule; x != nil && x.Score.Overflow <= best.Score.Overflow && x.Score.Value*(1+tie) < best.Score.Value {
		add(x, x.Method+"+fusion", "the devices of "+x.Method+" with the best fusion found for them")
	}
	return more
}

// references finds the plans that the rows are held against.
func (s *searcher) references(e plan.Evaluator, rows []*Row) (r References) {
	p := s.problem
	n := p.Graph.NumOps()
	var fusions [][]uint8
	if p.Decides(plan.Fuse) {
		fusions = append(fusions, slices.Repeat([]uint8{1}, n))
		for _, x := range rows {
			if x.Fusion != nil {
				fusions = append(fusions, x.Fusion)
			}
		}
	}
	better := func(of **Reference, method string, d plan.Decision) {
		if x := e.Evaluate(d); *of == nil || x.Better((*of).Score) {
			*of = &Reference{method, x, d}
		}
	}
	m := p.Machine
	for d := range m.Devices {
		if slices.ContainsFunc(m.Devices[:d], func(v hw.Device) bool { return v.SameFigures(&m.Devices[d]) }) {
			continue
		}
		device := slices.Repeat([]uint8{uint8(d)}, n)
		for _, f := range append([][]uint8{p.Fusion}, fusions...) {
			better(&r.OneDevice, OneDeviceMethod, plan.Decision{Device: device, Priority: p.Priority, Fusion: f})
		}
	}
	var best *Row
	for _, x := range rows {
		if best == nil || x.better(best) {
			best = x
		}
	}
	for _, x := range rows {
		if x.Kind != plan.Baseline {
			continue
		}
		better(&r.Rule, x.Method, x.Decision)
		if len(fusions) > 0 && x.Fusion == nil {
			better(&r.Rule, x.Method, plan.Decision{Device: x.Device, Priority: x.Priority, Fusion: fusions[0]})
			if best.Fusion != nil {
				better(&r.Rule, x.Method, plan.Decision{Device: x.Device, Priority: x.Priority, Fusion: best.Fusion})
			}
		}
	}
	return r
}
