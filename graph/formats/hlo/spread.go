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
			x := *b.b.TensorAt(t)
			op := *b.b.At(x.Producer)
			op.Name = b.names.Take(op.Name)
			id := b.add(op, b.b.InputsAt(x.Producer), []graph.Tensor{{DType: x.DType, Shape: x.Shape, Bytes: x.Bytes}}, b.scopes[x.Producer])
			in[k] = b.b.Output(id, 0)
		}
	}
}
