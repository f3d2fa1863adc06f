package train

import "placer/graph"

// sumGrad repeats the gradient along the summed axes: Reshape and Tile by
// constants when everything is summed, else by the arithmetic of keptShape.
func sumGrad(s *step) {
	s.give(0, s.spread())
}

func (s *step) spread() graph.TensorID {
	x, g := s.in[0], s.grad(0)
	if s.d.size(s.y(0)) == 1 && len(s.d.b.TensorAt(s.y(0)).Shape) == 0 {
		g = s.reshape(g, s.axes(s.d.rank(x)), g)
		return s.one("Tile", []graph.TensorID{g, s.shape(x)}, s.like(x))
	}
	kept, shape := s.keptShape()
	multiples := s.safeDiv(shape, kept, ints(s.d.rank(x)))
	g = s.reshape(g, kept, g)
	return s.one("Tile", []graph.TensorID{g, multiples}, s.like(x))
}

// keptShape returns the shape of the reduction's result with the reduced axes
// kept as ones, and that of its input: Shape, Size, add, mod, Shape, Range with
// its two constants, Fill with its constant, DynamicStitch.
func (s *step) keptShape() (kept, shape graph.TensorID) {
	r := s.d.rank(s.in[0])
	shape = s.shape(s.in[0])
	size := s.constantAs("Size", ints(-1)) // a rank, always known
	axes := s.arg(1)
	n := s.d.rank(axes)
	if d := s.d.b.TensorAt(axes).Shape; len(d) == 1 {
		n = int(d[0])
	}
	axes = s.host("Add", []graph.TensorID{axes, size}, ints(n))
	axes = s.host("FloorMod", []graph.TensorID{axes, size}, ints(n))
	count := s.constantAs("Shape", ints(1)) // of the axes, always known
	all := s.host("Range", []graph.TensorID{s.axes(-1), size, s.axes(-1)}, ints(r))
	ones := s.host("Fill", []graph.TensorID{count, s.axes(-1)}, ints(n))
	return s.host("DynamicStitch", []graph.TensorID{all, axes, shape, ones}, ints(r)), shape
}

// safeDiv returns x // max(y, 1) on integers.
func (s *step) safeDiv(x, y graph.TensorID, out graph.Tensor) graph.TensorID {
	return s.host("FloorDiv", []graph.TensorID{x, s.host("Maximum", []graph.TensorID{y, s.axes(-1)}, out)}, out)
}

// mean is the gradient of the sum over the number of elements averaged.
func mean(s *step) {
	g := s.spread()
	n := scalar(s.d.b.TensorAt(g).DType)
	var factor graph.TensorID
	if s.d.cfg.StaticShapes {
		factor = s.axes(-1)
	} else {
		all := s.host("Prod", []graph.TensorID{s.shape(s.in[0]), s.axes(1)}, ints(-1))
		kept := s.host("Prod", []graph.TensorID{s.shape(s.y(0)), s.axes(1)}, ints(-1))
		factor = s.safeDiv(all, kept, ints(-1))
	}
	factor = s.host("Cast", []graph.TensorID{factor}, n)
	s.give(0, s.binary("RealDiv", g, factor, g))
}

// maxGrad shares the gradient among the elements equal to the result.
func maxGrad(s *step) {
	x, g := s.in[0], s.grad(0)
	if len(s.in) > 1 && isFloat(s.d.b.TensorAt(s.in[1]).DType) {
		fallback(s) // ONNX's Max and Min are elementwise
		return
	}
	kept, _ := s.keptShape()
	y := s.reshape(s.y(0), kept, s.y(0))
	g = s.reshape(g, kept, g)
	mask := s.like(x)
	mask.DType, mask.Bytes = graph.Bool, asBool(s.d.size(x))
	chosen := s.one("Cast", []graph.TensorID{s.one("Equal", []graph.TensorID{y, x}, mask)}, s.like(x))
	n := s.reshape(s.sum(chosen, s.arg(1), g), kept, g)
	s.give(0, s.binary("Mul", s.binary("RealDiv", chosen, n, x), g, x))
}

func l2Loss(s *step) { s.give(0, s.binary("Mul", s.in[0], s.grad(0), s.in[0])) }

// topK scatters the gradient of the values to where the indices, made flat, say.
// TensorFlow's index arithmetic is longer by some ops on the host.
func topK(s *step) {
	if len(s.out) < 2 {
		fallback(s)
		return
	}
	x, g, at := s.in[0], s.grad(0), s.y(1)
	n := int(s.d.size(at))
	shape := s.shape(x)
	flat := s.host("Reshape", []graph.TensorID{at, s.shape(at)}, ints(n))
	rows := s.host("Range", []graph.TensorID{s.axes(-1), s.integer("Size", x), s.axes(-1)}, ints(n))
	flat = s.one("Add", []graph.TensorID{flat, rows}, ints(n))
	s.give(0, s.one("ScatterND", []graph.TensorID{flat, g, shape}, s.like(x)))
}
