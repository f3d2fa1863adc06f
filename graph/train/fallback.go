package train

import (
	"placer/graph"
	"placer/units"
)

// fallback differentiates a kind that has no rule, by its class: a product with
// dimensions becomes two products, a view a Reshape, and anything else one op
// <Kind>Grad that reads the gradients and the inputs and gives the inputs'. The
// arithmetic of that op is the forward's for each input wanted, but at least
// twice when the op holds weights beside data (a whole recurrent layer). Where the
// forward op is products in the main (attention, a recurrent layer), so is the gradient,
// of as many times the batches.
func fallback(s *step) {
	f := s.forward()
	switch class := f.Kind.Class(); {
	case (class == graph.ClassGEMM || class == graph.ClassConv) && len(s.in) >= 2 && !f.GEMM.IsZero():
		matMul(s)
		return
	case class == graph.ClassMeta && len(s.in) > 0:
		reshape(s)
		return
	}
	var in []graph.TensorID
	for k, v := range s.out {
		if !v.isNone() {
			in = append(in, s.grad(k))
		}
	}
	in = append(in, s.in...)
	var give []int
	for k := range s.in {
		if s.want(k) {
			give = append(give, k)
		}
	}
	if len(give) > 0 {
		times := min(len(give), 2)
		o := s.d.b.At(s.kernel(f.Kind+"Grad", in, give))
		o.FLOPs, o.GEMM = f.FLOPs*units.FLOPs(times), f.GEMM
		o.GEMM.Batch *= int64(times)
		if n, _ := f.Iterations(); n > 1 { // tensors hold all iterations, of which weights are read in each
			o.Bytes = f.Bytes * units.Bytes(times)
		}
	}
}
