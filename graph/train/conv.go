package train

import "placer/graph"

// conv: ShapeN of both operands, Conv2DBackpropInput(shape, w, dy),
// Conv2DBackpropFilter(x, shape, dy). A third operand (ONNX's) is a bias.
func conv(s *step) { s.convWith("Conv2DBackpropInput", "Conv2DBackpropFilter", s.shapeN) }

func depthwise(s *step) {
	s.convWith("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", func(a, b graph.TensorID) (x, y graph.TensorID) {
		return s.shape(a), s.shape(b)
	})
}

// shapeN returns the shapes of a and b by one op, which TensorFlow does not
// replace by constants.
func (s *step) shapeN(a, b graph.TensorID) (x, y graph.TensorID) {
	x = s.host("ShapeN", []graph.TensorID{a, b}, ints(s.d.rank(a)), ints(s.d.rank(b)))
	return x, x + 1
}

func (s *step) convWith(input, filter graph.Kind, shapes func(a, b graph.TensorID) (x, y graph.TensorID)) {
	g := s.grad(0)
	x, w := s.in[0], s.in[1]
	sx, sw := shapes(x, w)
	s.convProduct(0, 0, input, []graph.TensorID{sx, w, g})
	s.convProduct(1, 1, filter, []graph.TensorID{x, sw, g})
	s.biasGrad(2, g)
}

// convProduct gives input k the result of a convolution with the forward's FLOPs.
// operand says which operand of the forward product it is the gradient of: 0 the
// data's, 1 the filter's.
func (s *step) convProduct(k, operand int, kind graph.Kind, in []graph.TensorID) {
	if !s.want(k) {
		return
	}
	i := s.emit(string(kind), kind, in, s.like(s.in[k]))
	o := s.d.b.At(i)
	o.FLOPs, o.GEMM = s.forward().FLOPs, gradientOf(s.forward().GEMM, operand)
	s.give(k, s.d.b.Output(i, 0))
}

// convTranspose (ONNX: x, w, bias) is the input gradient of a convolution, so
// its own gradient is that convolution.
func convTranspose(s *step) {
	g := s.grad(0)
	x, w := s.in[0], s.in[1]
	s.convProduct(0, 0, "Conv2D", []graph.TensorID{g, w})
	if s.want(1) {
		s.convProduct(1, 1, "Conv2DBackpropFilter", []graph.TensorID{g, s.shape(w), x})
	}
	s.biasGrad(2, g)
}

// convBackpropInput is TensorFlow's transposed convolution (sizes, w, x).
func convBackpropInput(s *step) {
	g := s.grad(0)
	w, x := s.in[1], s.in[2]
	if s.want(1) {
		s.convProduct(1, 1, "Conv2DBackpropFilter", []graph.TensorID{g, s.shape(w), x})
	}
	s.convProduct(2, 0, "Conv2D", []graph.TensorID{g, w})
}

// maxPool: MaxPoolGrad(x, y, dy), with the forward's FLOPs.
func maxPool(s *step) {
	g := s.grad(0)
	s.pool("MaxPoolGrad", []graph.TensorID{s.in[0], s.y(0), g})
}

// avgPool: Shape, AvgPoolGrad(shape, dy): it saves no activation.
func avgPool(s *step) {
	g := s.grad(0)
	s.pool("AvgPoolGrad", []graph.TensorID{s.shape(s.in[0]), g})
}

func (s *step) pool(kind graph.Kind, in []graph.TensorID) {
	i := s.emit(string(kind), kind, in, s.like(s.in[0]))
	s.d.b.At(i).FLOPs = s.forward().FLOPs
	s.give(0, s.d.b.Output(i, 0))
}
