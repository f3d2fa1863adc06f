package train

import (
	"slices"

	"placer/graph"
)

// softmax: (g - sum(g*y)) * y, so it saves the output: Mul, Sum, Sub, Mul.
func softmax(s *step) {
	g, y := s.grad(0), s.y(0)
	total := s.lastSum(s.binary("Mul", g, y, y))
	s.give(0, s.binary("Mul", s.binary("Sub", g, total, y), y, y))
}

// logSoftmax: g - sum(g) * exp(y).
func logSoftmax(s *step) {
	g, y := s.grad(0), s.y(0)
	p := s.one("Exp", []graph.TensorID{y}, s.like(y))
	s.give(0, s.binary("Sub", g, s.binary("Mul", s.lastSum(g), p, y), y))
}

// lastSum sums t over its last axis, which it keeps.
func (s *step) lastSum(t graph.TensorID) graph.TensorID {
	x := s.like(t)
	if n := len(x.Shape); n > 0 {
		x.Shape = append(append(graph.Shape(nil), x.Shape[:n-1]...), 1)
		x.Bytes = graph.Auto
	}
	return s.one("Sum", []graph.TensorID{t, s.axes(1)}, x)
}

// crossEntropy scales the gradient by the logits that the forward op leaves in
// its second output: PreventGradient (sparse labels), ExpandDims, Mul. A forward
// op without that output has one kernel that reads logits and labels.
func crossEntropy(s *step) {
	if s.out[0].isNone() {
		return
	}
	g := s.grad(0)
	if len(s.out) < 2 {
		in := append([]graph.TensorID{g}, s.in...)
		s.give(0, s.one("SoftmaxCrossEntropyGrad", in, s.like(s.in[0])))
		return
	}
	d := s.y(1)
	if s.forward().Kind == "SparseSoftmaxCrossEntropyWithLogits" {
		d = s.one("PreventGradient", []graph.TensorID{d}, s.like(d))
	}
	s.give(0, s.scaleRows(g, d))
	if s.want(1) { // soft labels: -log softmax
		l := s.one("LogSoftmax", s.in[:1], s.like(s.in[0]))
		l = s.one("Neg", []graph.TensorID{l}, s.like(l))
		s.give(1, s.scaleRows(g, l))
	}
}

// scaleRows multiplies every row of x by its element of g.
func (s *step) scaleRows(g, x graph.TensorID) graph.TensorID {
	column := s.like(g)
	if column.Shape != nil {
		column.Shape = append(append(graph.Shape(nil), column.Shape...), 1)
	}
	e := s.one("ExpandDims", []graph.TensorID{g, s.axes(-1)}, column)
	return s.binary("Mul", e, x, x)
}

// batchNorm gives x, scale and offset the outputs of one kernel that reads
// (g, x, scale) and the statistics the forward op has saved: its last two
// outputs, or for an inference op its operands.
func batchNorm(kind graph.Kind) rule {
	return func(s *step) {
		in := []graph.TensorID{s.grad(0), s.in[0], s.in[1]}
		switch n := len(s.out); {
		case n >= 5:
			in = append(in, s.y(3), s.y(4)) // reserve_space of TensorFlow; V3 has a third
			if n > 5 {
				in = append(in, s.y(5))
			}
		case n >= 3:
			in = append(in, s.y(1), s.y(2))
		default:
			in = append(in, s.in[3:]...)
		}
		s.fused(kind, in, 0, 1, 2)
	}
}

// layerNorm is one kernel that reads (g, x, scale) and the saved statistics.
func layerNorm(kind graph.Kind) rule {
	return func(s *step) {
		in := append([]graph.TensorID{s.grad(0)}, s.in[:min(2, len(s.in))]...)
		for k := 1; k < len(s.out); k++ {
			in = append(in, s.y(k))
		}
		outs := make([]int, len(s.in))
		for k := range outs {
			outs[k] = k
		}
		s.fused(kind, in, outs...)
	}
}

// fused adds one kernel with an output for each of the named inputs that is a
// float.
func (s *step) fused(kind graph.Kind, in []graph.TensorID, to ...int) {
	s.kernel(kind, in, slices.DeleteFunc(to, func(k int) bool { return k >= len(s.in) || !isFloat(s.d.b.TensorAt(s.in[k]).DType) }))
}

// kernel adds one kernel whose outputs are the gradients of the inputs to.
func (s *step) kernel(kind graph.Kind, in []graph.TensorID, to []int) graph.OpID {
	outs := make([]graph.Tensor, len(to))
	for slot, k := range to {
		outs[slot] = s.like(s.in[k])
	}
	i := s.emit(string(kind), kind, in, outs...)
	for slot, k := range to {
		s.give(k, s.d.b.Output(i, slot))
	}
	return i
}

// skipLayerNorm (x, skip, scale, offset, bias) normalises x + skip + bias, which
// its last output saves.
func skipLayerNorm(s *step) {
	g, x := s.grad(0), s.in[0]
	in := []graph.TensorID{g, x, s.in[1], s.in[2]}
	if len(s.out) > 3 {
		in = []graph.TensorID{g, s.y(3), s.in[2]}
	}
	outs := []graph.Tensor{s.like(x), s.like(s.in[2])}
	if len(s.in) > 3 {
		outs = append(outs, s.like(s.in[3]))
	}
	i := s.emit("LayerNormGrad", "LayerNormGrad", in, outs...)
	dx := s.d.b.Output(i, 0)
	if len(s.out) > 3 && !s.out[3].isNone() { // the sum is read by others too
		dx = s.one("AddN", []graph.TensorID{dx, s.grad(3)}, s.like(x))
	}
	s.give(0, dx)
	s.give(1, dx)
	for k := 2; k < len(s.in) && k < 4; k++ {
		s.give(k, s.d.b.Output(i, k-1))
	}
	s.biasGrad(4, dx)
}

// lrn: LRNGrad(g, x, y).
func lrn(s *step) {
	s.give(0, s.one("LRNGrad", []graph.TensorID{s.grad(0), s.in[0], s.y(0)}, s.like(s.in[0])))
}
