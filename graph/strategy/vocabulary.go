package strategy

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// vocabulary adds output layers, whose products lead to a cross entropy and nothing else, and the
// tables of embeddings that have a row for each of their columns: every rank has a part of the
// vocabulary, agrees with the others on the largest score, the sum and the target's score of each
// row, and looks up what its part of the table has (Shoeybi et al., arXiv:1909.08053, section 3).
// The vocabulary is taken as padded to a multiple of the ranks.
func (s *Split) vocabulary(order []graph.TensorID, openers map[graph.TensorID][]graph.OpID, closed []bool) {
	g := s.m.Micro
	columns := map[int64]bool{}
	for _, x := range order {
		for _, i := range openers[x] {
			if !closed[i] && s.outputs(i) {
				columns[g.Op(i).GEMM.N] = true
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Phase != graph.Forward || o.Kind.Class() != graph.ClassGather || s.m.once[i] || len(g.Inputs(i)) < 2 {
			continue
		}
		table := g.Inputs(i)[0]
		shape := g.Tensor(table).Shape
		if p := g.Tensor(table).Producer; !s.m.once[p] || !s.trained(p) || len(shape) != 2 || !columns[shape[0]] || !s.onlyVocabulary(table) {
			continue
		}
		ids, err := g.Tensor(g.Inputs(i)[1]).Shape.Elements()
		if out, e := g.Tensor(first(g, i)).Shape.Elements(); err != nil || e != nil || out != ids*shape[1] {
			continue
		}
		s.lookup[i] = true
		s.Partial[first(g, i)] = true
		s.rows[first(g, i)] = ids
	}
}

// onlyVocabulary reports whether the forward pass reads a table, or a view of it, for look-ups and
// for split output layers alone.
func (s *Split) onlyVocabulary(table graph.TensorID) bool {
	g := s.m.Micro
	for _, v := range g.Consumers(table) {
		switch o := g.Op(v); {
		case o.Phase != graph.Forward || o.Kind.Class() == graph.ClassGather || s.Shared[v]:
		case s.m.once[v]:
			for t, end := g.Outputs(v); t < end; t++ {
				if !s.onlyVocabulary(t) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// ofTable reports whether op i makes the gradient of the table that f looks up in, all its rows, not
// those alone that are looked up.
func (s *Split) ofTable(i, f graph.OpID) bool {
	g := s.m.Micro
	return g.Op(i).Kind == "UnsortedSegmentSum" && g.Tensor(first(g, i)).Shape.Equal(g.Tensor(g.Inputs(f)[0]).Shape)
}

// outputs cuts product i by columns if it is an output layer: of its scores, row by row, a cross
// entropy is made, by one op or by a LogSoftmax and ops that pick the target's.
func (s *Split) outputs(i graph.OpID) bool {
	g := s.m.Micro
	columns := g.Op(i).GEMM.N
	inside := map[graph.TensorID]bool{first(g, i): true}
	ops := []graph.OpID{i}
	entropy, normalised := false, false
	for k := 0; k < len(ops); k++ {
		for t, end := g.Outputs(ops[k]); t < end; t++ {
			if !inside[t] {
				continue
			}
			for _, v := range g.Consumers(t) {
				o := g.Op(v)
				if o.Phase != graph.Forward || slices.Contains(ops, v) {
					continue
				}
				u, stop := g.Outputs(v)
				scores := t == g.Inputs(v)[0]
				switch {
				case len(ops) > 64:
					return false
				case o.Kind == "SparseSoftmaxCrossEntropyWithLogits" && scores && stop == u+2: // losses, and gradients of the scores
					entropy = true
					inside[u+1] = true
				case o.Kind == "LogSoftmax" && scores && lastOf(g, u) == columns:
					normalised = true
					inside[u] = true
				case picks(o.Kind) && scores && normalised:
					entropy = true
				case o.Kind.Class() == graph.ClassElementwise, o.Kind.Class() == graph.ClassMeta:
					inside[u] = true
				case (o.Kind == "Slice" || o.Kind == "StridedSlice") && scores && lastOf(g, t) == columns && lastOf(g, u) == columns: // some rows
					inside[u] = true
				default:
					return false
				}
				ops = append(ops, v)
			}
		}
	}
	if !entropy {
		return false
	}
	for _, v := range ops[1:] {
		for _, t := range g.Inputs(v) {
			if !agrees(g.Op(v).Kind) && !inside[t] && !s.m.once[g.Tensor(t).Producer] {
				return false
			}
		}
	}
	s.output[i] = true
	for _, v := range ops {
		s.Shared[v] = true
		s.Statistics[v] = agrees(g.Op(v).Kind)
	}
	for t := range inside {
		s.Cut[t] = true
	}
	return true
}

// picks reports whether ops of a kind pick the target's of each row's logarithms of probabilities.
func picks(k graph.Kind) bool { return k == "NegativeLogLikelihoodLoss" || k == "GatherElements" }

// agrees reports whether ranks that have some columns each agree on something in ops of a kind.
func agrees(k graph.Kind) bool {
	return picks(k) || k == "LogSoftmax" || k == "SparseSoftmaxCrossEntropyWithLogits"
}

// lastOf returns the last dimension of tensor t, 0 without one.
func lastOf(g *graph.Graph, t graph.TensorID) int64 {
	shape := g.Tensor(t).Shape
	if len(shape) == 0 {
		return 0
	}
	return shape[len(shape)-1]
}

// statistics returns what ranks agree on in op i, one all-reduce of these bytes after the other:
// of each row the largest score, the sum of exponentials and the target's score (Megatron-LM,
// vocab_parallel_cross_entropy), f32 each; of losses that are added up at once, the sum (PyTorch's
// loss_parallel).
func (s *Split) statistics(i graph.OpID) []units.Bytes {
	g := s.m.Micro
	t := first(g, i)
	switch k := g.Op(i).Kind; {
	case picks(k):
		return []units.Bytes{g.Tensor(t).Bytes}
	case k == "LogSoftmax":
		n, err := g.Tensor(t).Shape.Elements()
		if last := lastOf(g, t); err == nil && last > 0 {
			n /= last
		}
		return []units.Bytes{units.Bytes(4 * n), units.Bytes(4 * n)}
	}
	b := g.Tensor(t).Bytes
	return []units.Bytes{b, b, b}
}

// reduceStatistics all-reduces what ranks have to agree on in op i. What reads its first result
// waits.
func (e *emitter) reduceStatistics(i graph.OpID, stage int) {
	for d := range e.data {
		var last []graph.OpID
		for _, bytes := range e.split.statistics(i) {
			rs, members := e.members(d, func(r *replica) member {
				return member{rank: e.rank(r, i), wait: []graph.OpID{r.pass[e.micro][i]}}
			})
			for k := range last {
				members[k].wait = last[k : k+1]
			}
			last = e.collective(Collective{Kind: AllReduce, Axis: TensorAxis, Stage: stage, Bytes: bytes, Ranks: e.s.Tensor}, e.g.Op(i).Name, members)
			for k, id := range last {
				rs[k].after[e.micro][first(e.g, i)] = id
			}
		}
	}
}
