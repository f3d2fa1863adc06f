package train

import "placer/graph"

// accumulate returns the sum of the gradients vs of forward tensor t: one AddN,
// or when any is sparse the concatenation of all rows and of all indices, to
// which dense gradients contribute every row.
func (s *scope) accumulate(t graph.TensorID, vs []value) value {
	switch len(vs) {
	case 0:
		return none
	case 1:
		return vs[0]
	}
	sparse := false
	in := make([]graph.TensorID, 0, len(vs))
	for _, v := range vs {
		sparse = sparse || v.isSparse()
		in = append(in, v.dense)
	}
	if !sparse {
		i := s.emit("AddN", "AddN", in, s.like(t))
		n := len(vs) - 1
		s.d.b.At(i).FLOPs = s.d.b.At(i).FLOPs * flops(n)
		return dense(s.d.b.Output(i, 0))
	}
	var rows, indices []graph.TensorID
	shape := absent
	n, bytes := int64(0), graph.Auto+1
	for _, v := range vs {
		if !v.isSparse() {
			v = s.allRows(v.dense)
		}
		if shape == absent {
			shape = v.shape
		}
		rows, indices = append(rows, v.rows), append(indices, v.indices)
		n += s.d.size(v.indices)
		bytes += s.d.bytes(v.rows)
	}
	out := s.like(rows[0])
	out.Bytes = bytes
	if len(out.Shape) > 0 {
		out.Shape = append(graph.Shape{n}, out.Shape[1:]...)
	} else {
		out.Shape = nil // rows of unknown shape: the bytes alone count
	}
	sum := s.one("ConcatV2", append(rows, s.axes(-1)), out)
	at := s.one("ConcatV2", append(indices, s.axes(-1)), graph.Tensor{DType: s.d.b.TensorAt(indices[0]).DType, Shape: graph.Shape{n}, Bytes: graph.Auto})
	return value{absent, sum, at, shape}
}

// allRows returns the dense gradient t as rows with the indices 0, 1, ...
func (s *scope) allRows(t graph.TensorID) value {
	shape := s.shape(t)
	n := int64(1)
	if d := s.d.b.TensorAt(t).Shape; len(d) > 0 {
		n = d[0]
	}
	limit := s.stridedSlice(shape, ints(-1))
	at := s.host("Range", []graph.TensorID{s.axes(-1), limit, s.axes(-1)}, ints(int(n)))
	return value{absent, t, at, shape}
}

// densify returns the sum of the rows of v as a tensor like that of to.
func (s *scope) densify(v value, to graph.TensorID) graph.TensorID {
	n := s.stridedSlice(v.shape, ints(-1))
	return s.segmentSum(v.rows, v.indices, n, s.like(to))
}

// stridedSlice adds a StridedSlice of the integer vector t with its three
// constants.
func (s *scope) stridedSlice(t graph.TensorID, out graph.Tensor) graph.TensorID {
	return s.host("StridedSlice", []graph.TensorID{t, s.axes(1), s.axes(1), s.axes(1)}, out)
}

// segmentSum adds rows to the rows of a zero tensor out that indices name: out is
// cleared, and for each row the target is read and written.
func (s *scope) segmentSum(rows, indices, n graph.TensorID, out graph.Tensor) graph.TensorID {
	y := s.one("UnsortedSegmentSum", []graph.TensorID{rows, indices, n}, out)
	o := s.d.b.At(s.d.b.TensorAt(y).Producer)
	o.FLOPs = flops(s.d.size(rows))
	o.Bytes = 3*s.d.bytes(rows) + s.d.bytes(y)
	return y
}
