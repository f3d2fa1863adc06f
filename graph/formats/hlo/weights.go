package hlo

import (
	"fmt"

	"placer/graph"
	"placer/units"
)

// weights settles what the parameters of the entry are. What is given back in place stays on
// its device: it is a variable. One that the step computes with is a weight; an optimizer's
// state, a running mean and a cache of keys and values are none. What is not given back is a
// weight where JAX's name of the argument says so, and an input otherwise. A weight to which a
// step that trains gives no new value is frozen: it stays, and is no parameter.
func (b *builder) weights() {
	if len(b.arguments) == 0 {
		return
	}
	e := b.evidence()
	var named units.Bytes
	example, variables, nameless, trees := "", 0, true, false
	for i := range graph.OpID(b.b.NumOps()) {
		x := b.arguments[i]
		if x == nil {
			continue
		}
		place := placeOf(x)
		nameless = nameless && x.attr.scope == "" && mlirArgument.MatchString(x.name)
		trees = trees || len(nameParts.FindAllString(x.attr.scope, -1)) > 1
		given := b.m.aliased[x.attr.index]
		if !given && place == input {
			continue
		}
		variables++
		op := b.hold(i)
		if !given {
			named += op.Resident
			if example == "" {
				example = op.Name
			}
		}
		if isFloat(op.DType) && (given && e.givenWeight(i, place) || !given && e.namedWeight(i, place)) {
			op.Params = x.shape.elements()
		}
	}
	if named > 0 {
		b.note("%v of arguments are taken for weights or state by their names, as %s: they stay where they are", named, example)
	}
	switch {
	case variables > 0 || !e.products:
	case nameless:
		b.note("the %d arguments have no names, and none is given back in place: all count as inputs, none as weights; lower(...).as_text(debug_info=True) has names", len(b.arguments))
	case trees:
		b.note("none of the %d arguments is given back in place or has the name of a weight, such as params['layer']['kernel']: all count as inputs", len(b.arguments))
	}
}

// hold makes argument i a variable, which stays on its device.
func (b *builder) hold(i graph.OpID) *graph.Op {
	op := b.b.At(i)
	op.Kind, op.Resident = "VariableV2", b.arguments[i].shape.bytes()
	first, end := b.b.OutputsAt(i)
	for t := first; t < end; t++ {
		b.b.TensorAt(t).Resident = true
	}
	return op
}

// evidence is what tells weights from what else stays on a device.
type evidence struct {
	learns   []bool              // [N] ops that the loss and a product depend on
	cached   map[graph.OpID]bool // arguments of which the step writes a part
	apart    bool                // weights are among what is not given back, so that the rest is state unless its name says otherwise
	trains   bool                // some op goes backward
	products bool                // some op is a product
	frozen   map[graph.OpID]bool // weights by name, not given back, to which the step gives no new value
}

func (b *builder) evidence() *evidence {
	e := &evidence{learns: b.multiplied(), cached: map[graph.OpID]bool{}, frozen: map[graph.OpID]bool{}}
	if loss := b.losses(); len(loss) > 0 {
		reach := b.reachedFrom(func(i graph.OpID) bool { return loss[i] }, nil)
		for i := range e.learns {
			e.learns[i] = e.learns[i] && reach[i]
		}
	}
	for _, p := range b.places {
		if made := b.b.TensorAt(p.value).Producer; b.written[made] {
			for _, read := range b.b.InputsAt(made) {
				e.cached[b.b.TensorAt(read).Producer] = true
			}
		}
	}
	for i := range graph.OpID(b.b.NumOps()) {
		e.trains = e.trains || b.b.At(i).Phase == graph.Backward
		e.products = e.products || !b.b.At(i).GEMM.IsZero()
	}
	free := b.unplaced()
	for i := range graph.OpID(b.b.NumOps()) {
		x := b.arguments[i]
		if x == nil || b.m.aliased[x.attr.index] || placeOf(x) != weight {
			continue
		}
		form := formOf(&x.shape)
		if free[form]--; e.trains && free[form] < 0 {
			e.frozen[i] = true
		} else {
			e.apart = true
		}
	}
	if len(e.frozen) > 0 && !e.apart && !b.trainsGiven(e) { // a step that adds gradients up
		e.apart, e.frozen = true, nil
	}
	return e
}

// trainsGiven reports whether the step gives a weight back in place.
func (b *builder) trainsGiven(e *evidence) bool {
	for i, x := range b.arguments {
		if b.m.aliased[x.attr.index] && placeOf(x) != state && isFloat(b.b.At(i).DType) && e.products && e.learns[i] && !e.cached[i] {
			return true
		}
	}
	return false
}

// multiplied returns, for each op, whether what it makes flows into a product other than by
// the new value of another argument: an optimizer's state flows into what is computed with
// the weights that it has updated.
func (b *builder) multiplied() []bool {
	cut := map[graph.TensorID]bool{}
	for _, p := range b.places {
		if t := b.viewed(p.value); b.arguments[b.b.TensorAt(t).Producer] == nil {
			cut[p.value], cut[t] = true, true
		}
	}
	reached := b.reachedFrom(func(i graph.OpID) bool { return !b.b.At(i).GEMM.IsZero() }, cut)
	read := map[graph.TensorID]bool{} // new values that products are made of
	for i := range graph.OpID(len(reached)) {
		if reached[i] {
			for _, t := range b.b.InputsAt(i) {
				if cut[t] {
					read[t] = true
				}
			}
		}
	}
	for _, p := range b.places {
		if read[p.value] || read[b.viewed(p.value)] {
			reached[p.argument] = true
		}
	}
	return reached
}

// unplaced returns how many results of each form are given back in no argument's place.
func (b *builder) unplaced() map[string]int {
	placed, n := map[int]bool{}, map[string]int{}
	for _, p := range b.places {
		placed[p.result] = true
	}
	for k, t := range b.gives {
		if x := b.b.TensorAt(t); !placed[k] {
			n[fmt.Sprint(x.DType, x.Shape)]++
		}
	}
	return n
}

// formOf is an array's type and dimensions, as unplaced has them.
func formOf(x *shape) string { return fmt.Sprint(x.elem.dtype, graph.Shape(x.dims)) }

// givenWeight reports whether argument i, which is given back in place, is a weight.
func (e *evidence) givenWeight(i graph.OpID, p place) bool {
	return (!e.apart || p == weight) && (!e.products || e.learns[i] && !e.cached[i])
}

// namedWeight reports whether argument i, which is not given back, is a weight.
func (e *evidence) namedWeight(i graph.OpID, p place) bool {
	return p == weight && !e.frozen[i] && (!e.trains || e.learns[i])
}

// losses returns the ops that make what is given back in no argument's place.
func (b *builder) losses() map[graph.OpID]bool {
	loss := map[graph.OpID]bool{}
	placed := map[int]bool{}
	for _, p := range b.places {
		placed[p.result] = true
	}
	for k, t := range b.gives {
		if !placed[k] {
			loss[b.b.TensorAt(t).Producer] = true
		}
	}
	return loss
}

func isFloat(t graph.DType) bool {
	switch t {
	case graph.F8, graph.F16, graph.BF16, graph.F32, graph.F64:
		return true
	}
	return false
}

// reachedFrom returns, for each op, whether what it makes flows into one that is a goal,
// other than by tensors that are cut.
func (b *builder) reachedFrom(goal func(graph.OpID) bool, cut map[graph.TensorID]bool) []bool {
	reached := make([]bool, b.b.NumOps())
	for i := graph.OpID(len(reached) - 1); i >= 0; i-- { // ops stand behind what they read
		if reached[i] || goal(i) {
			reached[i] = true
			for _, t := range b.b.InputsAt(i) {
				if !cut[t] {
					reached[b.b.TensorAt(t).Producer] = true
				}
			}
		}
	}
	return reached
}

// writesInPlace reports whether x gives its first operand back with a part of it replaced.
func (x *instruction) writesInPlace() bool {
	if x.opcode == "fusion" && len(x.called) == 1 && x.called[0].root != nil {
		x = x.called[0].root
	}
	return x.updates() != nil && x.assigns()
}
