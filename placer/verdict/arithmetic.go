package verdict

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/units"
)

// typeOf returns the element type at whose peak the arithmetic of o is counted: products in
// f32 that are not precise run in tf32 where there are units for it.
func typeOf(o *graph.Op) graph.DType {
	if o.DType == graph.F32 && !o.GEMM.IsZero() && !o.Precise {
		return graph.TF32
	}
	return o.DType
}

// peak returns the rate of d in type t, and the type of that rate: f32 for what d has no
// units of its own for.
func peak(d *hw.Device, t graph.DType) (units.FLOPsPerSecond, graph.DType) {
	if p, ok := d.Peak[t.String()]; ok {
		return p, t
	}
	return d.Peak[graph.F32.String()], graph.F32
}

// atPeak returns the time of g's arithmetic if all devices of m shared it and ran at the
// peak of its type.
func atPeak(g *graph.Graph, m *hw.Machine) (s units.Seconds) {
	byType := map[graph.DType]units.FLOPsPerSecond{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		t := typeOf(o)
		if _, ok := byType[t]; !ok {
			for d := range m.Devices {
				p, _ := peak(&m.Devices[d], t)
				byType[t] += p
			}
		}
		s += o.FLOPs.Over(byType[t])
	}
	return s
}

// Arithmetic is the work of a step in one element type.
type Arithmetic struct {
	Type  graph.DType // at whose peak it is counted
	Peak  units.FLOPsPerSecond
	FLOPs units.FLOPs
	// Precise are those of products in f32 that ask for all its bits.
	Precise units.FLOPs
}

// ArithmeticOf returns in what types g computes on d, most FLOPs first.
func ArithmeticOf(g *graph.Graph, d *hw.Device) (all []Arithmetic) {
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		if o.FLOPs == 0 {
			continue
		}
		rate, t := peak(d, typeOf(o))
		k := slices.IndexFunc(all, func(x Arithmetic) bool { return x.Type == t })
		if k < 0 {
			k = len(all)
			all = append(all, Arithmetic{Type: t, Peak: rate})
		}
		all[k].FLOPs += o.FLOPs
		if o.Precise && !o.GEMM.IsZero() && o.DType == graph.F32 {
			all[k].Precise += o.FLOPs
		}
	}
	slices.SortStableFunc(all, func(a, b Arithmetic) int { return cmp.Compare(b.FLOPs, a.FLOPs) })
	return all
}
