package hlo

import "placer/graph"

// own gives each reader of a broadcast of a single number a broadcast of its own, as compilers do,
// which make it where it is read: modules have one for all, which would be held from the first
// reader to the last. In a compiled module what is left of them is so.
func (b *builder) own(in []graph.TensorID) {
	for k, t := range in {
		switch read, ok := b.spread[t]; {
		case !ok:
		case !read:
			b.spread[t] = true
		default:
			from := b.b.TensorAt(t).Producer
			in[k] = b.b.Output(b.alike(b.b.At(from), b.b.InputsAt(from), b.b.TensorAt(t), b.scopes[from]), 0)
		}
	}
}

// alike adds an op like one, under a name of its own, which makes an array like out, or nothing.
func (b *builder) alike(one *graph.Op, in []graph.TensorID, out *graph.Tensor, scope string) graph.OpID {
	op := *one
	op.Name = b.names.Take(op.Name)
	if out == nil {
		return b.add(op, in, nil, scope)
	}
	return b.add(op, in, []graph.Tensor{{DType: out.DType, Shape: out.Shape, Bytes: out.Bytes}}, scope)
}
