package strategy

import (
	"math"
	"slices"

	"placer/graph"
)

// Gradients of one activation are added up two by two, in the order in which they come: what went
// around a block before those of queries, keys and values, say, where a norm is behind the sum. Partial
// sums among them are all-reduced once all the same, where the last of them is added: until then one
// rank adds what is whole, or by rows each rank its own, to its partial sum. A block has one reduction
// in the backward pass so (Megatron-LM: Shoeybi et al., arXiv:1909.08053, figure 4), whatever else
// reads its activation.

// joinSums leaves of the partial sums that sums of gradients read one, their result, where these are
// several.
func (s *Split) joinSums(again []bool) {
	g := s.m.Micro
	carries := make([]bool, g.NumOps()) // sums of one partial sum and of what is whole
	for i := range graph.OpID(g.NumOps()) {
		if again[i] || !s.addsWhole(i) {
			continue
		}
		var partial []graph.TensorID
		for _, t := range g.Inputs(i) {
			if s.solely(t, i) && (s.Partial[t] || carries[g.Tensor(t).Producer]) {
				partial = append(partial, t)
			}
		}
		carries[i] = len(partial) == 1
		if len(partial) > 0 {
			s.narrow(i, partial)
		}
		if len(partial) < 2 {
			continue
		}
		for _, t := range partial {
			s.carry(t, carries)
		}
		s.partial(i)
		s.ByRows[i] = s.ByRows[i] && slices.ContainsFunc(g.Inputs(i), func(t graph.TensorID) bool { return s.Rows[t] })
	}
}

// carry has t, a partial sum or the sum of one and of what is whole, added up before it is reduced.
func (s *Split) carry(t graph.TensorID, carries []bool) {
	g := s.m.Micro
	if s.Partial[t] {
		s.Partial[t] = false
		return
	}
	i := g.Tensor(t).Producer
	s.Rows[t] = false
	for _, x := range g.Inputs(i) {
		if s.solely(x, i) && (s.Partial[x] || carries[g.Tensor(x).Producer]) {
			s.carry(x, carries)
		}
	}
}

// addsWhole reports whether op i adds up gradients of an activation, some of them whole.
func (s *Split) addsWhole(i graph.OpID) bool {
	g := s.m.Micro
	o, t := g.Op(i), first(g, i)
	return o.Phase == graph.Backward && adds(o.Kind) && !s.m.once[i] && !s.Shared[i] && !s.Cut[t] && !s.Partial[t] && !s.Summed[t] &&
		!slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return s.m.once[v] })
}

// widens returns, of an op that casts what it alone reads, how many times as wide its result is, and
// 1 of any other.
func (s *Split) widens(i graph.OpID) int64 {
	g := s.m.Micro
	if g.Op(i).Kind != "Cast" || !s.solely(g.Inputs(i)[0], i) {
		return 1
	}
	return max(1, int64(g.Tensor(first(g, i)).Bytes/max(1, g.Tensor(g.Inputs(i)[0]).Bytes)))
}

// narrow notes how many times as wide the result of op i is, a cast or sum of partial sums, as those
// of its inputs given, which are partial sums, were made.
func (s *Split) narrow(i graph.OpID, in []graph.TensorID) {
	least := int64(math.MaxInt64)
	for _, t := range in {
		if !s.m.once[s.m.Micro.Tensor(t).Producer] { // a shape
			least = min(least, max(1, s.Narrow[t]))
		}
	}
	if n := least * s.widens(i); n > 1 {
		s.Narrow[first(s.m.Micro, i)] = n
	}
}
