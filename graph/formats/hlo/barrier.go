package hlo

import (
	"slices"

	"placer/graph"
)

// barrier gives what x passes on by names of its own, once all of it is there: what is computed
// again backward waits so for the gradients. Names take no memory. Arguments and constants are
// there in any case.
func (b *builder) barrier(x *instruction, f *frame, args [][]graph.TensorID) {
	scope := f.within(x.attr.scope)
	op := &graph.Op{Name: f.prefix + x.name, Kind: "NoOp", Forward: graph.None, Module: modulePath(scope)}
	if b.backward(x, scope, false) {
		op.Phase = graph.Backward
	}
	in := slices.Concat(args...)
	out := slices.Clone(in)
	waits, after := map[graph.OpID]bool{}, []graph.OpID{}
	for _, t := range in {
		if p := b.b.TensorAt(t).Producer; !b.there(t) && !waits[p] {
			waits[p] = true
			after = append(after, p)
		}
	}
	gate := graph.None
	if len(after) > 1 {
		gate = b.alike(op, nil, nil, scope)
		for _, p := range after {
			b.b.Control(p, gate)
		}
		b.waits[gate] = append(b.waits[gate], after...)
		f.ops[x] = gate
	}
	for k, t := range in {
		if b.there(t) {
			continue
		}
		op.Kind, op.DType = "Identity", b.b.TensorAt(t).DType
		id := b.alike(op, []graph.TensorID{t}, b.b.TensorAt(t), scope)
		if gate == graph.None {
			f.ops[x] = id
		} else {
			b.b.Control(gate, id)
			b.waits[id] = append(b.waits[id], gate)
		}
		out[k] = b.b.Output(id, 0)
	}
	f.of[x] = out
}

// there reports whether t is an argument or a constant.
func (b *builder) there(t graph.TensorID) bool {
	x := b.b.TensorAt(t)
	return x.Resident || b.arguments[x.Producer] != nil
}
