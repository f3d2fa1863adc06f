package train

import (
	"placer/graph"
	"placer/units"
)

// attention is one kernel that reads the output's gradient, all that the forward op has read and
// what it has written, computes the scores again, and writes the gradients of queries, keys and
// values: 2.5 times the forward's operations (Dao, arXiv:2307.08691, section 4.1), beside two
// small kernels before and behind it. It sums the queries' gradient up in f32.
func attention(s *step) {
	if s.out[0].isNone() {
		return
	}
	f := s.forward()
	in := append([]graph.TensorID{s.grad(0)}, s.in...)
	in = append(in, s.y(0))
	if len(s.out) == 2 { // the logarithms of the sums
		in = append(in, s.y(1))
	}
	var give []int
	for k := range s.in {
		if s.want(k) {
			give = append(give, k)
		}
	}
	if len(give) == 0 {
		return
	}
	o := s.d.b.At(s.kernel(graph.AttentionGrad, in, give))
	o.GEMM = graph.AttentionGradGEMM(f.GEMM, s.sharing())
	o.FLOPs = o.GEMM.FLOPs()
	o.Kernels = 3
	o.Workspace = units.Bytes(s.d.size(s.in[0]) * graph.F32.Size())
}

// sharing returns how many heads of queries, [B,H,S,K], share one of keys, [B,G,T,K]; 1 for an op of
// other operands.
func (s *step) sharing() int64 {
	if len(s.in) < 2 {
		return 1
	}
	q, k := s.d.b.TensorAt(s.in[0]).Shape, s.d.b.TensorAt(s.in[1]).Shape
	if len(q) != 4 || len(k) != 4 || k[1] < 1 {
		return 1
	}
	return max(1, q[1]/k[1])
}
