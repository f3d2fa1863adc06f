package hlo

import (
	"fmt"

	"placer/graph"
)

// barrier gives what x passes on by names of its own, once all of it is there: what is computed
// again backward waits so for the gradients. Names take no memory. Arguments and constants are
// there in any case.
func (b *builder) barrier(x *instruction, f *frame, args [][]graph.TensorID) {
	scope := f.within(x.attr.scope)
	op := graph.Op{Forward: graph.None, Module: modulePath(scope)}
	if b.backward(x, scope, false) {
		op.Phase = graph.Backward
	}
	var in, out []graph.TensorID
	for _, a := range args {
		in = append(in, a...)
	}
	out = append(out, in...)
	waits, after := map[graph.OpID]bool{}, []graph.OpID{}
	for _, t := range in {
		if p := b.b.TensorAt(t).Producer; !b.there(t) && !waits[p] {
			waits[p] = true
			after = append(after, p)
		}
	}
	gate := graph.None
	if len(after) > 1 {
		op.Name, op.Kind = b.names.Take(f.prefix+x.name), "NoOp"
		gate = b.add(op, nil, nil, scope)
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
		of := *b.b.TensorAt(t)
		op.Name, op.Kind, op.DType = b.names.Take(fmt.Sprintf("%s%s.%d", f.prefix, x.name, k)), "Identity", of.DType
		id := b.add(op, []graph.TensorID{t}, []graph.Tensor{{DType: of.DType, Shape: of.Shape, Bytes: of.Bytes}}, scope)
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
