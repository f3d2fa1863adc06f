package train

import (
	"placer/graph"
	"placer/units"
)

// narrow reports whether variables of type t have a master copy under MasterWeights.
func narrow(t graph.DType) bool { return t == graph.F16 || t == graph.BF16 }

// Narrow reports whether g has a trainable variable of 16 bits, without which MasterWeights
// changes nothing.
func Narrow(g *graph.Graph) bool {
	for i := range graph.OpID(g.NumOps()) {
		if first, _ := g.Outputs(i); trainable(g, i) && narrow(g.Tensor(first).DType) {
			return true
		}
	}
	return false
}

// keepMaster gives v a master copy, and the scope of its update arithmetic in f32. The rows
// of a sparse gradient are converted on their own: what sums and scales them reads f32.
func (s *scope) keepMaster(v *variable) {
	s.common.DType = graph.F32
	v.master = s.variable("master", s.inF32(v.ref))
	if v.grad.isSparse() {
		v.grad.rows = s.one("Cast", []graph.TensorID{v.grad.rows}, s.inF32(v.grad.rows))
	}
}

// learned returns the tensor that the optimizer's arithmetic is on: the master copy of v,
// or v where it has none.
func (v *variable) learned() graph.TensorID {
	if v.master != absent {
		return v.master
	}
	return v.ref
}

// learn adds the op that updates v; words are those of apply, one of them the gradient's.
// Where v has a master copy they are of f32 but for the gradient, which is read in its own
// type, and v is written beside them; gradient and result are converted as Cast does.
func (s *scope) learn(kind graph.Kind, v *variable, words int, grad graph.TensorID, in ...graph.TensorID) graph.OpID {
	if v.master == absent {
		return s.apply(kind, words, grad, v.ref, in...)
	}
	i := s.apply(kind, words, grad, v.ref, append([]graph.TensorID{v.master}, in...)...)
	o, n := s.d.b.At(i), s.d.size(grad)
	o.Bytes = s.d.bytes(grad) + units.Bytes(n*(int64(words-1)*graph.F32.Size()+s.d.b.TensorAt(v.ref).DType.Size()))
	casts := 1
	if s.d.b.TensorAt(grad).DType != graph.F32 {
		casts++
	}
	f, _ := graph.FactsOf("Cast")
	o.FLOPs += units.FLOPs(f.FLOPsPerElement) * flops(casts) * flops(n)
	return i
}

// inF32 returns a tensor of the shape of t in f32 that owns its memory.
func (s *scope) inF32(t graph.TensorID) graph.Tensor {
	x := s.like(t)
	x.Bytes = units.Bytes(elements(&x) * graph.F32.Size())
	x.DType = graph.F32
	return x
}
