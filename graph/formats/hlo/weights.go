package hlo

import (
	"regexp"
	"strings"

	"placer/graph"
	"placer/units"
)

// weights settles what the parameters of the entry are. What is given back in place stays on
// its device: it is a variable. One that the step computes with is a weight; an optimizer's
// state, a running mean and a cache of keys and values are none. What is not given back is a
// weight where JAX's name of the argument says so, and an input otherwise. f is the entry's.
func (b *builder) weights(f *frame) {
	if len(b.arguments) == 0 {
		return
	}
	learns := b.reachedFrom(func(i graph.OpID) bool { return !b.b.At(i).GEMM.IsZero() })
	given, _ := f.value(b.m.entry.root)
	loss := map[graph.OpID]bool{}
	for k, t := range given {
		if !b.m.outputs[int64(k)] && !b.m.donors {
			loss[b.b.TensorAt(t).Producer] = true
		}
	}
	if len(loss) > 0 {
		reach := b.reachedFrom(func(i graph.OpID) bool { return loss[i] })
		for i := range learns {
			learns[i] = learns[i] && reach[i]
		}
	}
	cached := map[graph.OpID]bool{}
	for k, t := range given {
		if made := b.b.TensorAt(t).Producer; b.m.outputs[int64(k)] && b.written[made] {
			for _, read := range b.b.InputsAt(made) {
				cached[b.b.TensorAt(read).Producer] = true
			}
		}
	}
	apart := false // weights are among what is not given back, so that the rest is state unless its name says otherwise
	for _, x := range b.arguments {
		apart = apart || !b.m.aliased[x.attr.index] && placeOf(x) == weight
	}
	trains, products := false, false
	for i := range graph.OpID(b.b.NumOps()) {
		trains = trains || b.b.At(i).Phase == graph.Backward
		products = products || !b.b.At(i).GEMM.IsZero()
	}
	var named units.Bytes
	example, variables, nameless := "", 0, true
	for i := range graph.OpID(b.b.NumOps()) {
		x := b.arguments[i]
		if x == nil {
			continue
		}
		place := placeOf(x)
		nameless = nameless && x.attr.scope == "" && mlirArgument.MatchString(x.name)
		known := place == weight || place == state
		if !b.m.aliased[x.attr.index] && !known {
			continue
		}
		op := b.b.At(i)
		variables++
		op.Kind, op.Resident = "VariableV2", x.shape.bytes()
		first, end := b.b.OutputsAt(i)
		for t := first; t < end; t++ {
			b.b.TensorAt(t).Resident = true
		}
		if !b.m.aliased[x.attr.index] {
			named += op.Resident
			if example == "" {
				example = op.Name
			}
		}
		switch {
		case !isFloat(op.DType):
		case b.m.aliased[x.attr.index] && (!apart || place == weight) && (!products || learns[i] && !cached[i]), !b.m.aliased[x.attr.index] && place == weight && (!trains || learns[i]):
			op.Params = x.shape.elements()
		}
	}
	if named > 0 {
		b.note("%v of arguments are taken for weights or state by their names, as %s: they stay where they are", named, example)
	}
	if variables == 0 && products && nameless {
		b.note("the %d arguments have no names, and none is given back in place: all count as inputs, none as weights; lower(...).as_text(debug_info=True) has names", len(b.arguments))
	}
}

func isFloat(t graph.DType) bool {
	switch t {
	case graph.F8, graph.F16, graph.BF16, graph.F32, graph.F64:
		return true
	}
	return false
}

// reachedFrom returns, for each op, whether what it makes flows into one that is a goal.
func (b *builder) reachedFrom(goal func(graph.OpID) bool) []bool {
	reached := make([]bool, b.b.NumOps())
	for i := graph.OpID(len(reached) - 1); i >= 0; i-- { // ops stand behind what they read
		if reached[i] || goal(i) {
			reached[i] = true
			for _, t := range b.b.InputsAt(i) {
				reached[b.b.TensorAt(t).Producer] = true
			}
		}
	}
	return reached
}

// place is what a name says of an argument.
type place uint8

const (
	input place = iota
	weight
	state // an optimizer's, a running mean
)

var (
	// mlirArgument is what MLIR calls an argument.
	mlirArgument = regexp.MustCompile(`^arg\d+$`)

	nameParts = regexp.MustCompile(`[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*`)
	// weightNames are those of collections and of leaves in Flax, Haiku and Equinox.
	weightNames = regexp.MustCompile(`^(?:(?:\w+_)?(?:params|variables|weights?)|kernel|embedding|bias|scale|offset|w|b)$`)
	// stateNames are those of Flax's collections and of Optax's states.
	stateNames = regexp.MustCompile(`^(?:opt_state|optimizer_state|batch_stats|mu|nu|trace|v_row|v_col|ema|count)$`)
)

// placeOf is what the name of an argument says: params['Dense_0']['kernel'], or, where HLO
// has nothing but its own form of it, params__Dense_0____kernel__.1. A name without parts, as
// an array that a function takes has it, says nothing.
func placeOf(x *instruction) place {
	name := x.attr.scope
	if name == "" {
		name = strings.ReplaceAll(x.name, "__", " ")
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			name = name[:at]
		}
	}
	parts := nameParts.FindAllString(name, -1)
	is := input
	for _, p := range parts[min(len(parts), 1):] {
		if stateNames.MatchString(p) {
			return state
		}
		if weightNames.MatchString(p) {
			is = weight
		}
	}
	if len(parts) > 1 && weightNames.MatchString(parts[0]) {
		is = weight
	}
	if len(parts) > 1 && stateNames.MatchString(parts[0]) {
		is = state
	}
	return is
}

// writesInPlace reports whether x gives its first operand back with a part of it written.
func (x *instruction) writesInPlace() bool {
	if x.opcode == "fusion" && len(x.called) == 1 && x.called[0].root != nil {
		x = x.called[0].root
	}
	return x.opcode == "dynamic-update-slice"
}
