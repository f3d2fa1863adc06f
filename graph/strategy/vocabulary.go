package strategy

import (
	"slices"

	"placer/graph"
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

// onlyVocabulary reports whether the forward pass reads a table for look-ups and for split
// output layers alone.
func (s *Split) onlyVocabulary(table graph.TensorID) bool {
	g := s.m.Micro
	for _, v := range g.Consumers(table) {
		if o := g.Op(v); o.Phase == graph.Forward && o.Kind.Class() != graph.ClassGather && !s.Shared[v] {
			return false
		}
	}
	return true
}

// outputs cuts product i by columns if it is an output layer.
func (s *Split) outputs(i graph.OpID) bool {
	g := s.m.Micro
	inside := map[graph.TensorID]bool{first(g, i): true}
	ops := []graph.OpID{i}
	entropy := false
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
				switch loss := o.Kind == "SparseSoftmaxCrossEntropyWithLogits"; {
				case loss && t == g.Inputs(v)[0] && stop == u+2: // losses, and gradients of the scores
					entropy = true
					inside[u+1] = true
				case loss, o.Kind.Class() != graph.ClassElementwise && o.Kind.Class() != graph.ClassMeta, len(ops) > 64:
					return false
				default:
					inside[u] = true
				}
				ops = append(ops, v)
			}
		}
	}
	if !entropy {
		return false
	}
	for _, v := range ops[1:] {
		loss := g.Op(v).Kind == "SparseSoftmaxCrossEntropyWithLogits"
		for _, t := range g.Inputs(v) {
			if !loss && !inside[t] && !s.m.once[g.Tensor(t).Producer] {
				return false
			}
		}
	}
	for _, v := range ops {
		s.Shared[v] = true
		s.Statistics[v] = g.Op(v).Kind == "SparseSoftmaxCrossEntropyWithLogits"
	}
	for t := range inside {
		s.Cut[t] = true
	}
	return true
}

// reduceStatistics all-reduces what ranks have to agree on for each row of a cross entropy, op i
// with the losses t, one after the other: the largest score, the sum of exponentials, and the
// target's score (Megatron-LM, vocab_parallel_cross_entropy). What reads the losses waits.
func (e *emitter) reduceStatistics(i graph.OpID, t graph.TensorID, stage int) {
	c := Collective{AllReduce, TensorAxis, stage, e.g.Tensor(t).Bytes, e.s.Tensor}
	for d := range e.data {
		var last []graph.OpID
		for range 3 {
			rs, members := e.members(d, func(r *replica) member {
				return member{rank: e.rank(r, i), wait: []graph.OpID{r.pass[e.micro][i]}}
			})
			for k := range last {
				members[k].wait = last[k : k+1]
			}
			last = e.collective(c, e.g.Op(i).Name, members)
			for k, id := range last {
				rs[k].after[e.micro][t] = id
			}
		}
	}
}
