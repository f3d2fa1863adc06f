package train

import (
	"placer/graph"
	"placer/units"
)

// identity passes gradients on as they are, sparse ones too.
func identity(s *step) {
	for k := range s.in {
		if k < len(s.out) {
			s.giveValue(k, s.out[k])
		}
	}
}

// reshape: Shape of the input, Reshape.
func reshape(s *step) {
	s.give(0, s.reshape(s.grad(0), s.shape(s.in[0]), s.in[0]))
}

// transpose: InvertPermutation, Transpose.
func transpose(s *step) {
	p := s.host("InvertPermutation", []graph.TensorID{s.arg(1)}, ints(s.d.rank(s.in[0])))
	s.give(0, s.one("Transpose", []graph.TensorID{s.grad(0), p}, s.like(s.in[0])))
}

// manyParts is the number of inputs beyond which the gradient of a concatenation
// is one SplitV instead of slices.
const manyParts = 16

// concat: Rank, FloorMod of the axis, the inputs' shapes, ConcatOffset, and a
// Slice for each input; for many inputs Pack, Slice, Squeeze of the shapes and a
// SplitV. TensorFlow's axis is the last operand, an integer.
func concat(s *step) {
	var parts []int // inputs that are concatenated
	axis := absent
	for k, t := range s.in {
		if isFloat(s.d.b.TensorAt(t).DType) {
			parts = append(parts, k)
		} else {
			axis = t
		}
	}
	g := s.grad(0)
	if len(parts) == 1 {
		s.give(parts[0], g)
		return
	}
	if axis == absent {
		axis = s.axes(-1)
	}
	axis = s.host("FloorMod", []graph.TensorID{axis, s.integer("Rank", s.in[parts[0]])}, ints(-1))
	shapes := s.partShapes(parts)
	if len(parts) > manyParts {
		s.concatBySplit(parts, g, axis, shapes)
		return
	}
	outs := make([]graph.Tensor, len(parts))
	for k := range outs {
		outs[k] = ints(s.d.rank(s.in[parts[0]]))
	}
	offset := s.host("ConcatOffset", append([]graph.TensorID{axis}, shapes...), outs...)
	for k, part := range parts {
		if s.want(part) {
			y := s.one("Slice", []graph.TensorID{g, offset + graph.TensorID(k), shapes[k]}, s.like(s.in[part]))
			s.moves(y, s.d.bytes(y))
			s.give(part, y)
		}
	}
}

// moves sets the traffic of the op that makes y: n bytes read and written.
func (s *step) moves(y graph.TensorID, n units.Bytes) {
	s.d.b.At(s.d.b.TensorAt(y).Producer).Bytes = 2 * n
}

// partShapes returns the shapes of the named inputs: a constant each when known,
// else one ShapeN, before which TensorFlow has tried a Shape.
func (s *step) partShapes(parts []int) []graph.TensorID {
	shapes := make([]graph.TensorID, len(parts))
	if s.d.cfg.StaticShapes {
		for k, part := range parts {
			shapes[k] = s.shape(s.in[part])
		}
		return shapes
	}
	s.shape(s.in[parts[0]])
	in := make([]graph.TensorID, len(parts))
	outs := make([]graph.Tensor, len(parts))
	for k, part := range parts {
		in[k], outs[k] = s.in[part], ints(s.d.rank(s.in[part]))
	}
	first := s.host("ShapeN", in, outs...)
	for k := range shapes {
		shapes[k] = first + graph.TensorID(k)
	}
	return shapes
}

func (s *step) concatBySplit(parts []int, g, axis graph.TensorID, shapes []graph.TensorID) {
	n, r := len(parts), s.d.rank(s.in[parts[0]])
	all := s.host("Pack", shapes, ints(n*r))
	begin := s.host("Pack", []graph.TensorID{axis, s.axes(-1)}, ints(2))
	sizes := s.host("Squeeze", []graph.TensorID{s.host("Slice", []graph.TensorID{all, begin, s.axes(2)}, ints(n))}, ints(n))
	outs := make([]graph.Tensor, n)
	for k, part := range parts {
		outs[k] = s.like(s.in[part])
	}
	i := s.emit("SplitV", "SplitV", []graph.TensorID{g, sizes, axis}, outs...)
	for k, part := range parts {
		s.give(part, s.d.b.Output(i, k))
	}
}

// split: ConcatV2 of the gradients of all parts.
func split(s *step) {
	data, axis := -1, absent
	for k, t := range s.in {
		if isFloat(s.d.b.TensorAt(t).DType) {
			data = k
		} else {
			axis = t
		}
	}
	if data < 0 || !s.want(data) {
		return
	}
	in := make([]graph.TensorID, 0, len(s.out)+1)
	for k := range s.out {
		in = append(in, s.grad(k))
	}
	if axis == absent {
		axis = s.axes(-1)
	}
	s.give(data, s.one("ConcatV2", append(in, axis), s.like(s.in[data])))
}

// slice pads the gradient with zeros: twelve ops, of which Pad alone moves data.
func slice(s *step) {
	r := s.d.rank(s.in[0])
	begin := s.arg(1)
	rank := s.integer("Rank", s.in[0])
	size := s.shape(s.y(0))
	column := s.host("Pack", []graph.TensorID{rank, s.axes(-1)}, ints(2))
	before := s.host("Reshape", []graph.TensorID{begin, column}, ints(r))
	after := s.host("Sub", []graph.TensorID{s.shape(s.in[0]), size}, ints(r))
	after = s.host("Sub", []graph.TensorID{after, begin}, ints(r))
	after = s.host("Reshape", []graph.TensorID{after, column}, ints(r))
	padding := s.host("ConcatV2", []graph.TensorID{before, after, s.axes(-1)}, ints(2*r))
	s.give(0, s.one("Pad", []graph.TensorID{s.grad(0), padding}, s.like(s.in[0])))
}

// stridedSlice: Shape, StridedSliceGrad(shape, begin, end, strides, g).
func stridedSlice(s *step) {
	in := []graph.TensorID{s.shape(s.in[0]), s.arg(1), s.arg(2), s.arg(3), s.grad(0)}
	s.give(0, s.one("StridedSliceGrad", in, s.like(s.in[0])))
}

// pack: Unpack.
func pack(s *step) {
	outs := make([]graph.Tensor, len(s.in))
	for k, t := range s.in {
		outs[k] = s.like(t)
	}
	i := s.emit("Unpack", "Unpack", []graph.TensorID{s.grad(0)}, outs...)
	for k := range s.in {
		s.give(k, s.d.b.Output(i, k))
	}
}

// unpack: Pack.
func unpack(s *step) {
	in := make([]graph.TensorID, len(s.out))
	for k := range s.out {
		in[k] = s.grad(k)
	}
	s.give(0, s.one("Pack", in, s.like(s.in[0])))
}

// pad cuts the padding off: Rank, Pack, Slice and Reshape of the paddings,
// Shape, Slice.
func pad(s *step) {
	r := s.d.rank(s.in[0])
	size := s.host("Pack", []graph.TensorID{s.integer("Rank", s.in[0]), s.axes(-1)}, ints(2))
	begin := s.host("Slice", []graph.TensorID{s.arg(1), s.axes(2), size}, ints(r))
	begin = s.host("Reshape", []graph.TensorID{begin, s.axes(1)}, ints(r))
	y := s.one("Slice", []graph.TensorID{s.grad(0), begin, s.shape(s.in[0])}, s.like(s.in[0]))
	s.moves(y, s.d.bytes(y))
	s.give(0, y)
}

// tile sums over the copies: the multiples and the shape, interleaved, give the
// Reshape whose even axes a Sum removes.
func tile(s *step) {
	r := s.d.rank(s.in[0])
	g := s.grad(0)
	both := s.host("Pack", []graph.TensorID{s.arg(1), s.shape(s.in[0])}, ints(2*r))
	rank := s.integer("Rank", both)
	steps := s.host("Range", []graph.TensorID{s.axes(-1), rank, s.axes(-1)}, ints(2))
	perm := s.host("Sub", []graph.TensorID{s.host("Sub", []graph.TensorID{rank, s.axes(-1)}, ints(-1)), steps}, ints(2))
	both = s.host("Transpose", []graph.TensorID{both, perm}, ints(2*r))
	both = s.host("Reshape", []graph.TensorID{both, s.axes(1)}, ints(2*r))
	axes := s.host("Range", []graph.TensorID{s.axes(-1), s.integer("Size", both), s.axes(-1)}, ints(r))
	s.give(0, s.sum(s.reshape(g, both, g), axes, s.in[0]))
}

// broadcastTo sums over the axes along which the input was repeated.
func broadcastTo(s *step) {
	g := s.grad(0)
	shapes := []graph.TensorID{s.shape(s.in[0]), s.shape(s.y(0))}
	r := s.d.rank(s.y(0))
	axes := s.host("BroadcastGradientArgs", shapes, ints(r), ints(r))
	s.give(0, s.reshape(s.sum(g, axes, s.in[0]), shapes[0], s.in[0]))
}

// inverse is the gradient of a rearrangement: kind with the same operands.
func inverse(kind graph.Kind) rule {
	return func(s *step) {
		in := append([]graph.TensorID{s.grad(0)}, s.in[1:]...)
		s.give(0, s.one(kind, in, s.like(s.in[0])))
	}
}
