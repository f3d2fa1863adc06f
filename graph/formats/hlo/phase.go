package hlo

import (
	"strings"

	"placer/graph"
)

// backward reports whether x, called in that scope, computes gradients: JAX's name of it says
// so, or, of a loop, a conditional or a fused product, those of what is in it.
func (b *builder) backward(x *instruction, scope string, product bool) bool {
	if transposed(scope) {
		return true
	}
	switch x.opcode {
	case "while", "conditional":
	case "fusion":
		if !product {
			return false
		}
	default:
		return false
	}
	for _, c := range x.called {
		if b.transposes(c, 0) {
			return true
		}
	}
	return false
}

func transposed(scope string) bool { return strings.Contains(scope, "transpose(") }

// transposes reports whether an instruction of c, or of what it calls, is named as going
// backward.
func (b *builder) transposes(c *computation, depth int) bool {
	known, ok := b.goesBack[c]
	if ok || depth > maxNesting {
		return known
	}
	for _, x := range c.list {
		known = known || transposed(x.attr.scope)
		for _, inner := range x.called {
			known = known || b.transposes(inner, depth+1)
		}
	}
	b.goesBack[c] = known
	return known
}

// phases tells gradients and updates from the forward pass. Where JAX's names say what goes
// backward, what depends on that and is not named as differentiated itself updates: the
// optimizer. Without such names, what the results beside weights do not depend on goes
// backward, and what gives a variable its new value element by element updates it. What only
// updates read is of the update: decay rates, counts, an optimizer's state.
func (b *builder) phases() {
	named := false
	for i := range graph.OpID(b.b.NumOps()) {
		named = named || b.b.At(i).Phase == graph.Backward
	}
	if named {
		b.phasesByName()
	} else if !b.phasesByStructure() {
		return
	}
	b.readByUpdates()
}

// phasesByName gives ops that depend on gradients the phase that their names leave: those
// without a name are of the phase of what they read.
func (b *builder) phasesByName() {
	after := make([]bool, b.b.NumOps())
	for i := range graph.OpID(len(after)) {
		op := b.b.At(i)
		after[i] = op.Phase == graph.Backward
		reads := graph.Forward
		for _, t := range b.b.InputsAt(i) {
			p := b.b.TensorAt(t).Producer
			after[i] = after[i] || after[p]
			reads = max(reads, b.b.At(p).Phase)
		}
		switch scope := b.scopes[i]; {
		case !after[i] || op.Phase == graph.Backward:
		case scope == "":
			op.Phase = reads
		case !strings.Contains(scope, "jvp("):
			op.Phase = graph.Update
		}
	}
}

// phasesByStructure is phasesByName without names. It reports whether the step trains: it
// gives a weight back with another value.
func (b *builder) phasesByStructure() bool {
	trains := false
	for _, p := range b.places {
		trains = trains || b.b.At(p.argument).Params > 0 && b.arguments[b.b.TensorAt(b.viewed(p.value)).Producer] == nil
	}
	loss := b.losses()
	if !trains || len(loss) == 0 {
		return false
	}
	forward := b.reachedFrom(func(i graph.OpID) bool { return loss[i] }, nil, nil)
	for i := range graph.OpID(b.b.NumOps()) {
		if op := b.b.At(i); !forward[i] && computes(op) {
			op.Phase = graph.Backward
		}
	}
	for _, p := range b.places {
		b.updating(p.value)
	}
	return true
}

// updating makes the ops that compute t element by element those of an update, back to the gradient that a product, a sum or a gather makes.
func (b *builder) updating(t graph.TensorID) {
	for stack := []graph.TensorID{t}; len(stack) > 0; {
		t, stack = stack[len(stack)-1], stack[:len(stack)-1]
		op := b.b.At(b.b.TensorAt(t).Producer)
		elementwise := op.Kind.Class() == graph.ClassElementwise || op.Kind == "BroadcastTo" || views(op) || op.Kind == "fusion" && op.GEMM.IsZero()
		if op.Phase != graph.Backward || !elementwise {
			continue
		}
		op.Phase = graph.Update
		stack = append(stack, b.b.InputsAt(b.b.TensorAt(t).Producer)...)
	}
}

// readByUpdates makes what only updates read a part of them. What trains itself is none.
func (b *builder) readByUpdates() {
	read, elsewhere := make([]bool, b.b.NumOps()), make([]bool, b.b.NumOps())
	for _, p := range b.places {
		if b.b.At(p.argument).Params == 0 {
			read[b.b.TensorAt(b.viewed(p.value)).Producer] = true
		}
	}
	for i := graph.OpID(len(read) - 1); i >= 0; i-- { // ops stand behind what they read
		op := b.b.At(i)
		if op.Phase == graph.Forward && read[i] && !elsewhere[i] && op.Params == 0 && op.Kind != "Placeholder" && !strings.Contains(b.scopes[i], "jvp(") {
			op.Phase = graph.Update
		}
		for _, t := range b.b.InputsAt(i) {
			p := b.b.TensorAt(t).Producer
			read[p] = true
			elsewhere[p] = elsewhere[p] || op.Phase != graph.Update
		}
	}
}

// computes reports whether op is no weight, constant or input.
func computes(op *graph.Op) bool {
	switch op.Kind.Class() {
	case graph.ClassVariable, graph.ClassConst, graph.ClassInput:
		return false
	}
	return true
}
