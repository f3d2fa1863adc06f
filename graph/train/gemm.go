package train

import "placer/graph"

// matMul: C [M,N] = A [M,K] x B [K,N], per batch. dA = dC B', dB = A' dC, each a
// product of the forward's FLOPs. A third operand (Gemm's) is a bias.
func matMul(s *step) {
	g := s.grad(0)
	for k := range 2 {
		if s.want(k) {
			s.give(k, s.product(k, g, s.like(s.in[k])))
		}
	}
	s.productBias(g)
}

// productBias gives operand 2, where there is one, the sum of g.
func (s *step) productBias(g graph.TensorID) {
	if s.want(2) {
		if s.d.size(s.in[2]) == s.d.size(g) {
			s.give(2, g)
		} else {
			s.biasGrad(2, g)
		}
	}
}

// product adds the product that gives the gradient of operand k.
func (s *step) product(k int, g graph.TensorID, out graph.Tensor) graph.TensorID {
	in := []graph.TensorID{g, s.in[1]}
	if k == 1 {
		in = []graph.TensorID{s.in[0], g}
	}
	f := s.forward()
	i := s.emit(string(f.Kind), f.Kind, in, out)
	o := s.d.b.At(i)
	o.FLOPs, o.GEMM = f.FLOPs, s.transposed(k)
	return s.d.b.Output(i, 0)
}

// gradientOf returns the product that gives the gradient of operand k of m:
// [M,N]x[N,K] for 0, [K,M]x[M,N] for 1.
func gradientOf(m graph.GEMM, k int) graph.GEMM {
	if k == 0 {
		return graph.GEMM{Batch: m.Batch, M: m.M, N: m.K, K: m.N}
	}
	return graph.GEMM{Batch: m.Batch, M: m.K, N: m.N, K: m.M}
}

// transposed is gradientOf the forward's product. Where one operand serves all
// batches, the sum over the batches lengthens the inner dimension.
func (s *step) transposed(k int) graph.GEMM {
	m := s.forward().GEMM
	r := gradientOf(m, k)
	if m.IsZero() {
		return r
	}
	if s.d.size(s.in[k]) == r.M*r.N {
		r.Batch, r.K = 1, r.K*m.Batch
	}
	if d := s.d.b.TensorAt(s.in[1]).Shape; k == 1 && len(d) >= 2 && d[len(d)-2] == m.N && d[len(d)-1] == m.K {
		r.M, r.N = r.N, r.M // the operand is stored transposed, and so is its gradient
	}
	return r
}

// batchMatMulV2 also sums over the batch dimensions along which an operand was
// repeated: Shape and a StridedSlice of each, BroadcastGradientArgs, and for
// each operand the product, Sum, Reshape. Static and equal batches need none.
func batchMatMulV2(s *step) {
	a, b := s.in[0], s.in[1]
	if s.d.cfg.StaticShapes && s.sameBatch(a, b) {
		matMul(s)
		return
	}
	g := s.grad(0)
	shapes := [2]graph.TensorID{s.shape(a), s.shape(b)}
	var batch [2]graph.TensorID
	for k := range shapes {
		batch[k] = s.stridedSlice(shapes[k], ints(max(s.d.rank(s.in[k])-2, 0)))
	}
	r := max(s.d.rank(s.y(0))-2, 0)
	axes := s.host("BroadcastGradientArgs", batch[:], ints(r), ints(r))
	for k := range 2 {
		if s.want(k) {
			p := s.product(k, g, s.like(s.in[k]))
			s.give(k, s.reshape(s.sum(p, axes+graph.TensorID(k), s.in[k]), shapes[k], s.in[k]))
		}
	}
}

// sameBatch reports whether a and b agree in all but the last two dimensions.
func (s *step) sameBatch(a, b graph.TensorID) bool {
	x, y := s.d.b.TensorAt(a).Shape, s.d.b.TensorAt(b).Shape
	if len(x) < 2 || len(x) != len(y) {
		return false
	}
	return x[:len(x)-2].Equal(y[:len(y)-2])
}
