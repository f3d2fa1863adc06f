package train

import "placer/graph"

// gather (params, indices[, axis]) has a sparse gradient: the rows of g and
// their indices, made of Shape, Cast, Size, ExpandDims, StridedSlice, ConcatV2
// and two Reshapes with six constants. Along another axis than the first, and where
// tables have dense gradients, it is one UnsortedSegmentSum.
func gather(s *step) {
	params, indices, g := s.in[0], s.arg(1), s.grad(0)
	n := s.d.size(indices)
	p := s.d.b.TensorAt(params)
	if s.d.cfg.DenseTables || p.Shape != nil && (len(p.Shape) == 0 || n*elements(&graph.Tensor{Shape: p.Shape[1:]}) != s.d.size(g)) {
		s.give(0, s.segmentSum(g, indices, s.axes(-1), s.like(params)))
		return
	}
	r := s.d.rank(params)
	shape := s.host("Cast", []graph.TensorID{s.shape(params)}, ints(r))
	size := s.integer("Size", indices)
	size = s.host("ExpandDims", []graph.TensorID{size, s.axes(-1)}, ints(1))
	tail := s.stridedSlice(shape, ints(max(r-1, 0)))
	rowsShape := s.host("ConcatV2", []graph.TensorID{size, tail, s.axes(-1)}, ints(r))
	out := s.like(g)
	if p.Shape != nil {
		out.Shape = append(graph.Shape{n}, p.Shape[1:]...)
	}
	rows := s.one("Reshape", []graph.TensorID{g, rowsShape}, out)
	at := graph.Tensor{DType: s.d.b.TensorAt(indices).DType, Shape: graph.Shape{n}, Bytes: graph.Auto}
	s.giveValue(0, value{absent, rows, s.one("Reshape", []graph.TensorID{indices, size}, at), shape})
}

// gatherND: ScatterND(indices, g, shape).
func gatherND(s *step) {
	s.give(0, s.one("ScatterND", []graph.TensorID{s.arg(1), s.grad(0), s.shape(s.in[0])}, s.like(s.in[0])))
}

// segmentSum (rows, ids, n): each row gets the gradient of its segment.
func segmentSum(s *step) {
	s.give(0, s.one("GatherV2", []graph.TensorID{s.grad(0), s.arg(1)}, s.like(s.in[0])))
}

// dynamicStitch (indices..., data...): each piece of data gathers its own.
func dynamicStitch(s *step) {
	g, half := s.grad(0), len(s.in)/2
	for k := half; k < len(s.in); k++ {
		if s.want(k) {
			s.give(k, s.one("GatherV2", []graph.TensorID{g, s.in[k-half]}, s.like(s.in[k])))
		}
	}
}
