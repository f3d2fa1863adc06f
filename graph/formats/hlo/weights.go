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
	averaged map[graph.OpID]bool // arguments whose new values are means of weights, as a target network's are
}

func (b *builder) evidence() *evidence {
	e := &evidence{learns: b.multiplied(), cached: map[graph.OpID]bool{}, frozen: map[graph.OpID]bool{}, averaged: map[graph.OpID]bool{}}
	if loss := b.losses(); len(loss) > 0 {
		reach := b.reachedFrom(func(i graph.OpID) bool { return loss[i] }, nil, nil)
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
	b.averages(e)
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

// averages finds the arguments whose new values are made element by element of the new values of
// weights, and of nothing that a product makes.
func (b *builder) averages(e *evidence) {
	weights := map[graph.TensorID]graph.OpID{} // new values of what products read
	for _, p := range b.places {
		if e.learns[p.argument] {
			weights[b.viewed(p.value)] = p.argument
		}
	}
	left := maxSearched
	for _, p := range b.places {
		if !e.learns[p.argument] {
			continue
		}
		own, found, seen := b.viewed(p.value), false, map[graph.TensorID]bool{}
		for stack := []graph.TensorID{own}; len(stack) > 0; {
			t := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if left--; left < 0 {
				return
			}
			if of, ok := weights[t]; ok && t != own && of != p.argument {
				found = true
				continue
			}
			made := b.b.TensorAt(t).Producer
			if b.arguments[made] != nil {
				continue
			}
			if op := b.b.At(made); op.Kind.Class() != graph.ClassElementwise && op.Kind.Class() != graph.ClassConst && op.Kind != "BroadcastTo" && !views(op) {
				found = false
				break
			}
			for _, from := range b.b.InputsAt(made) {
				if !seen[from] {
					seen[from] = true
					stack = append(stack, from)
				}
			}
		}
		if found {
			e.averaged[p.argument] = true
		}
	}
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
	within := map[graph.OpID][]bool{} // of loops, whether an input flows into a product there
	for _, l := range b.loops {
		own := make([]bool, len(l.end))
		for k, t := range l.end {
			own[k] = cut[t]
		}
		within[l.op] = l.x.multiplied(own)
	}
	reached := b.reachedFrom(func(i graph.OpID) bool { return !b.b.At(i).GEMM.IsZero() }, cut, within)
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
	return (!e.apart || p == weight) && (!e.products || e.learns[i] && !e.cached[i] && !e.averaged[i])
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
// other than by tensors that are cut. Of an op that is a goal by itself, within may say which
// inputs count.
func (b *builder) reachedFrom(goal func(graph.OpID) bool, cut map[graph.TensorID]bool, within map[graph.OpID][]bool) []bool {
	reached := make([]bool, b.b.NumOps())
	for i := graph.OpID(len(reached) - 1); i >= 0; i-- { // ops stand behind what they read
		if reached[i] || goal(i) {
			counts := within[i]
			if reached[i] {
				counts = nil
			}
			reached[i] = true
			for k, t := range b.b.InputsAt(i) {
				if !cut[t] && (k >= len(counts) || counts[k]) {
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
