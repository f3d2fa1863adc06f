package fit

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/units"
)

// OptimizerState returns what an answer about memory assumes of g's optimizer, in one line, or
// nothing where nothing is in doubt. Derived training steps hold the optimizer's slots in the
// type of the weights. Mixed-precision training holds f32 slots and an f32 copy of each weight
// of 16 bits beside it (Micikevicius et al., arXiv:1710.03740; ZeRO, Rajbhandari et al.,
// SC 2020, section 3.1: Adam's 12 bytes a parameter, 16 with the weight and its gradient).
// Bytes a parameter are those of a weight, its gradient and what the optimizer holds.
func OptimizerState(g *graph.Graph) string {
	slots := slotsOf(g)
	var now, mixed units.Bytes // of all weights of 16 bits that have slots
	var params, most int64
	var types []string
	for i, n := range slots {
		o := g.Op(graph.OpID(i))
		if n == 0 {
			continue
		}
		t := outputType(g, graph.OpID(i))
		now += units.Bytes(o.Params * t.Size() * n)
		mixed += units.Bytes(o.Params * 4 * (n + 1))
		params += o.Params
		most = max(most, n)
		if !slices.Contains(types, t.String()) {
			types = append(types, t.String())
		}
	}
	if params == 0 {
		return ""
	}
	slices.Sort(types)
	return fmt.Sprintf("the optimizer's state is held in the weights' own type, %s: %d bytes a parameter with weight and gradient; with an f32 copy of the weights and f32 state, as mixed-precision training has them, it would be %d, %v more in all",
		strings.Join(types, " and "), 2*(2+most), 4+4*(most+1), mixed-now)
}

// slotsOf returns how many variables of its size the update of each op holds beside it, [N]: 0
// but for trained weights of 16 bits.
func slotsOf(g *graph.Graph) []int64 {
	slots := make([]int64, g.NumOps())
	trained := map[int32]graph.OpID{} // by group
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params > 0 && o.Group > 0 && o.Kind.Class() == graph.ClassVariable && outputType(g, i).Size() == 2 {
			trained[o.Group] = i
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		w, ok := trained[o.Group]
		if ok && o.Params == 0 && o.Phase == graph.Update && o.Kind.Class() == graph.ClassVariable && o.Resident == g.Op(w).Resident {
			slots[w]++
		}
	}
	return slots
}

// outputType returns the type of the first tensor that op i makes; F32 without any.
func outputType(g *graph.Graph, i graph.OpID) graph.DType {
	t, end := g.Outputs(i)
	if t == end {
		return graph.F32
	}
	return g.Tensor(t).DType
}
