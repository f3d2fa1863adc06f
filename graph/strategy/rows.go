package strategy

import (
	"slices"

	"placer/graph"
)

// Sequence parallelism (Korthikanti et al., arXiv:2205.05198, section 4.2.2): what lies between
// blocks (norms, dropout, sums with what went around a block) works on each row alone, so that
// each rank does a T-th of the rows and keeps as much. It is found by structure: ops that work
// on rows alone, behind a block's last result or before what opens a block.

// divided reports whether a rank's op makes a T-th of tensor t.
func (s *Split) divided(t graph.TensorID) bool {
	return s.Cut[t] || s.Rows[t] && !s.Partial[t]
}

// forwardRows finds the ops of the forward pass that work by rows.
func (s *Split) forwardRows() {
	g := s.m.Micro
	open := map[graph.TensorID]int64{} // what opens blocks, with its rows
	for i := range graph.OpID(g.NumOps()) {
		if x, _, ok := s.linear(i); ok && s.Shared[i] && !s.Cut[x] {
			open[x] = g.Op(i).GEMM.Batch * g.Op(i).GEMM.M
		}
	}
	for i := range graph.OpID(g.NumOps()) { // behind blocks
		n := int64(0)
		for _, t := range g.Inputs(i) {
			if s.Partial[t] || s.Rows[t] {
				n = max(n, s.rows[t])
			}
		}
		if n > 1 && s.rowwise(i, n) {
			s.takeRows(i, n)
		}
	}
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- { // before them
		if s.ByRows[i] || g.Op(i).Phase != graph.Forward {
			continue
		}
		n, some, all := int64(0), false, true
		for t, end := g.Outputs(i); t < end; t++ {
			n = max(n, open[t])
			for _, v := range g.Consumers(t) {
				if g.Op(v).Phase != graph.Forward {
					continue
				}
				some = true
				switch x, _, ok := s.linear(v); {
				case s.ByRows[v]:
					n = max(n, s.rowsOf(v))
				case !ok || x != t || open[t] == 0:
					all = false
				}
			}
		}
		if some && all && n > 1 && s.rowwise(i, n) {
			s.takeRows(i, n)
		}
	}
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- { // views that lead to what reads all rows gain nothing
		if s.ByRows[i] && g.Op(i).Kind.Class() == graph.ClassMeta && !s.leadsToRows(i, open) {
			s.ByRows[i] = false
			for t, end := g.Outputs(i); t < end; t++ {
				s.Rows[t], s.rows[t] = false, 0
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if s.ByRows[i] {
			s.Count = gcd(s.Count, s.rowsOf(i))
		}
	}
}

// leadsToRows reports whether an op by rows or one that opens a block reads results of op i.
func (s *Split) leadsToRows(i graph.OpID, open map[graph.TensorID]int64) bool {
	g := s.m.Micro
	for t, end := g.Outputs(i); t < end; t++ {
		if open[t] > 0 || slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return g.Op(v).Phase == graph.Forward && s.ByRows[v] }) {
			return true
		}
	}
	return false
}

// rowsOf returns the number of rows of an op that works by rows.
func (s *Split) rowsOf(i graph.OpID) (n int64) {
	for t, end := s.m.Micro.Outputs(i); t < end; t++ {
		n = max(n, s.rows[t])
	}
	return n
}

// takeRows makes forward op i work by n rows.
func (s *Split) takeRows(i graph.OpID, n int64) {
	s.ByRows[i] = true
	for t, end := s.m.Micro.Outputs(i); t < end; t++ {
		s.Rows[t], s.rows[t] = true, n
	}
}

// rowwise reports whether forward op i works on each of n rows alone: all it makes has n rows,
// and so has all it reads, but vectors along the columns and numbers of what is there once.
func (s *Split) rowwise(i graph.OpID, n int64) bool {
	g := s.m.Micro
	o := g.Op(i)
	if o.Phase != graph.Forward || s.m.once[i] || s.Shared[i] || readsShape(o.Kind) {
		return false
	}
	switch o.Kind.Class() {
	case graph.ClassElementwise, graph.ClassMeta:
	case graph.ClassReduction:
		switch o.Kind {
		case "LayerNormalization", "RMSNorm", "SkipLayerNormalization", "Sum", "Mean", "ReduceSum", "ReduceMean", "ElementwiseMean":
		default:
			return false
		}
	default:
		return false
	}
	for t, end := g.Outputs(i); t < end; t++ {
		if !hasRows(g.Tensor(t).Shape, n) || slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return s.m.once[v] }) {
			return false
		}
	}
	for k, t := range g.Inputs(i) {
		x := g.Tensor(t)
		switch {
		case s.m.once[x.Producer]:
			if k > 0 && x.DType == graph.I32 || x.DType == graph.I64 { // a shape or an axis
				continue
			}
			if elements, err := x.Shape.Elements(); err != nil || x.Shape == nil || len(x.Shape) > 1 && elements > 1 {
				return false
			}
		case s.Cut[t]:
			return false
		case !hasRows(x.Shape, n) && !s.isNumber(t):
			return false
		}
	}
	return true
}

// isNumber reports whether tensor t has one element.
func (s *Split) isNumber(t graph.TensorID) bool {
	x := s.m.Micro.Tensor(t)
	n, err := x.Shape.Elements()
	return x.Shape != nil && err == nil && n == 1
}

func readsShape(k graph.Kind) bool {
	f, _ := graph.FactsOf(k)
	return f.ReadsShape
}

// hasRows reports whether the first dimensions of a shape, one or several, are n rows.
func hasRows(shape graph.Shape, n int64) bool {
	rows := int64(1)
	for _, d := range shape {
		if rows *= d; rows == n {
			return true
		}
		if rows > n || rows == 0 {
			return false
		}
	}
	return false
}

// backwardRows lets op i of the backward pass work by rows where what it is a gradient of does,
// or where it adds up what is by rows alone. Gradients of vectors are then of a rank's rows alone.
func (s *Split) backwardRows(i graph.OpID) {
	g := s.m.Micro
	o := g.Op(i)
	f := o.Forward
	if readsShape(o.Kind) {
		return
	}
	n, rowIn, wholeIn, summedIn := int64(0), false, false, false
	for _, t := range g.Inputs(i) {
		switch {
		case s.m.once[g.Tensor(t).Producer]:
		case s.Rows[t] || s.Partial[t]:
			rowIn, n = true, max(n, s.rows[t])
		case s.Summed[t]:
			summedIn = true
		default:
			wholeIn = true
		}
	}
	of := f != graph.None && s.ByRows[f]
	switch {
	case summedIn && !rowIn:
		s.sum(i)
		return
	case !of && (wholeIn || !rowIn || !adds(o.Kind) && o.Kind.Class() != graph.ClassMeta):
		return
	case of:
		n = s.rowsOf(f)
	}
	for _, t := range g.Inputs(i) {
		if x := g.Tensor(t); !s.m.once[x.Producer] && !s.Rows[t] && !s.Partial[t] {
			if hasRows(x.Shape, n) {
				rowIn = true // of which a rank takes its rows
			} else if !s.isNumber(t) && x.DType != graph.I32 && x.DType != graph.I64 {
				return
			}
		}
	}
	if !rowIn {
		return
	}
	var rows []graph.TensorID
	for t, end := g.Outputs(i); t < end; t++ {
		if hasRows(g.Tensor(t).Shape, n) && !(of && s.likeOnce(t, f)) {
			if slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return s.m.once[v] }) {
				return
			}
			rows = append(rows, t)
		}
	}
	s.ByRows[i] = true
	s.sum(i)
	for _, t := range rows {
		s.Rows[t], s.Summed[t], s.rows[t] = true, false, n
	}
}

// sum makes the results of op i sums over a rank's rows.
func (s *Split) sum(i graph.OpID) {
	for t, end := s.m.Micro.Outputs(i); t < end; t++ {
		s.Summed[t] = true
	}
}

// likeOnce reports whether tensor t, of a gradient of op f, has the shape of something that f
// reads and that is there once, and of nothing else of f.
func (s *Split) likeOnce(t graph.TensorID, f graph.OpID) bool {
	g := s.m.Micro
	like := func(u graph.TensorID) bool { return g.Tensor(u).Shape.Equal(g.Tensor(t).Shape) }
	once := false
	for _, u := range g.Inputs(f) {
		if like(u) {
			if !s.m.once[g.Tensor(u).Producer] {
				return false
			}
			once = true
		}
	}
	for u, end := g.Outputs(f); u < end; u++ {
		if like(u) {
			return false
		}
	}
	return once
}

// scatter has partial sums that ops read by rows reduce-scattered, and those that are so already.
func (s *Split) scatter() {
	g := s.m.Micro
	for t := range graph.TensorID(g.NumTensors()) {
		if s.Partial[t] {
			s.Rows[t] = s.Rows[t] || slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return s.ByRows[v] })
		}
	}
}
