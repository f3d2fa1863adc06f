package fit

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/units"
)

// OptimizerState returns what an answer about memory rests on of g's optimizer, in one line, or
// nothing where no weight of 16 bits is trained: whether it has none, as plain SGD, or the state is held in the weights' own
// type or, with a master copy of each weight, in f32, as mixed-precision training has it
// (Micikevicius et al., arXiv:1710.03740; ZeRO, Rajbhandari et al., SC 2020, section 3.1:
// Adam's 12 bytes a parameter, 16 with the weight and its gradient). way is what asks for
// master weights where g was built, empty where g came as a step. Bytes a parameter are those
// of a weight, its gradient and what the optimizer holds.
func OptimizerState(g *graph.Graph, way string) string {
	var own, wide, bare total
	for i, s := range statesOf(g) {
		o, t := g.Op(graph.OpID(i)), outputType(g, graph.OpID(i))
		if s.own > 0 {
			own.add(t, o.Params, s.own, 2*s.own, 4*(s.own+1))
		}
		if s.wide > 0 {
			wide.add(t, o.Params, s.wide, 4*s.wide, 2*(s.wide-1))
		}
		if s == (state{trained: true}) {
			bare.add(t, o.Params, 0, 0, 4)
		}
	}
	const mixed = "f32 state and an f32 copy of the weights, as mixed-precision training has them"
	const copied = "an f32 copy of the weights, as mixed-precision training has it"
	switch {
	case own.params > 0 && way != "":
		return fmt.Sprintf("optimizer state is in the weights' type, %s: %d bytes a parameter, weight and gradient included; with %s (%s) it is %d, %v more in all",
			own.list(), 2*(2+own.most), way, mixed, 4+4*(own.most+1), own.other-own.now)
	case own.params > 0:
		return fmt.Sprintf("optimizer state is in the weights' type, %s: %d bytes a parameter, weight and gradient included; with %s, it is %d, %v more in all",
			own.list(), 2*(2+own.most), mixed, 4+4*(own.most+1), own.other-own.now)
	case wide.params > 0 && way != "":
		return fmt.Sprintf("%s: %s, beside weights of %s: %d bytes a parameter with weight and gradient; without it would be %d, %v less in all",
			way, mixed, wide.list(), 4+4*wide.most, 2*(1+wide.most), wide.now-wide.other)
	case wide.params > 0:
		return fmt.Sprintf("the optimizer's state is held in f32 beside weights of %s: %d bytes a parameter with weight and gradient", wide.list(), 4+4*wide.most)
	case bare.params > 0 && way != "":
		return fmt.Sprintf("the optimizer has no state beside weights of %s: 4 bytes a parameter with weight and gradient; with %s (%s) it would be 8, %v more in all",
			bare.list(), way, copied, bare.other)
	case bare.params > 0:
		return fmt.Sprintf("the optimizer has no state beside weights of %s: 4 bytes a parameter with weight and gradient; with %s, it would be 8, %v more in all",
			bare.list(), copied, bare.other)
	}
	return ""
}

// Narrow reports whether g trains weights of 16 bits that have no copy in f32.
func Narrow(g *graph.Graph) bool {
	return slices.ContainsFunc(statesOf(g), func(s state) bool { return s.own > 0 || s == state{trained: true} })
}

// total is what weights of 16 bits have beside them.
type total struct {
	now, other units.Bytes // of state: as it is, and the other way
	params     int64
	most       int64 // variables beside a weight
	types      []string
}

// add adds so many parameters of type t with n variables beside each, of so many bytes as it
// is and the other way.
func (x *total) add(t graph.DType, params, n, now, other int64) {
	x.now += units.Bytes(params * now)
	x.other += units.Bytes(params * other)
	x.params += params
	x.most = max(x.most, n)
	if !slices.Contains(x.types, t.String()) {
		x.types = append(x.types, t.String())
	}
}

// list names the types.
func (x *total) list() string {
	slices.Sort(x.types)
	return strings.Join(x.types, " and ")
}

// state counts the variables of a weight's size that its update holds beside it: in the
// weight's own type, and in f32.
type state struct {
	own, wide int64
	trained   bool // something updates the weight
}

// statesOf returns the state of each op of g, [N]: none but for trained weights of 16 bits.
func statesOf(g *graph.Graph) []state {
	states := make([]state, g.NumOps())
	trained := map[int32]graph.OpID{} // by group
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params > 0 && o.Group > 0 && o.Kind.Class() == graph.ClassVariable && outputType(g, i).Size() == 2 {
			trained[o.Group] = i
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Params == 0 || o.Kind.Class() != graph.ClassVariable || outputType(g, i).Size() != 2 {
			continue
		}
		t, _ := g.Outputs(i)
		states[i].trained = slices.ContainsFunc(g.Consumers(t), func(c graph.OpID) bool { return g.Op(c).Phase == graph.Update })
	}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		w, ok := trained[o.Group]
		if !ok || o.Params > 0 || o.Phase != graph.Update || o.Kind.Class() != graph.ClassVariable {
			continue
		}
		switch held := g.Op(w).Resident; {
		case o.Resident == held:
			states[w].own++
		case o.Resident == 2*held && outputType(g, i) == graph.F32:
			states[w].wide++
		}
	}
	return states
}

// outputType returns the type of the first tensor that op i makes; F32 without any.
func outputType(g *graph.Graph, i graph.OpID) graph.DType {
	t, end := g.Outputs(i)
	if t == end {
		return graph.F32
	}
	return g.Tensor(t).DType
}
