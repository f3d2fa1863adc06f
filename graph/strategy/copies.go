package strategy

import (
	"fmt"
	"slices"

	"placer/graph"
)

// copies finds what of the block makes keys and values that groups of queries share: where
// ranks are more than heads of keys and values, each rank has the one head that its queries
// read, and others have it too. Gradients of such heads would have to be added up, so there
// are none in a step with a backward pass; nor where one product makes queries too.
func (b *block) copies() {
	s, g := b.s, b.s.m.Micro
	if s.trains {
		return
	}
	copied := map[graph.OpID]bool{}
	reader := map[graph.OpID]bool{} // batched products, and what repeats heads for them
	for _, v := range b.ops {
		if s.heads(v) == 0 {
			continue
		}
		reader[v] = true
		s.Queries = gcd(s.Queries, s.queries(v))
		for _, t := range s.factors(v)[1:] {
			b.madeOf(t, copied)
		}
	}
	b.beforeRepeats(copied, reader)
	for _, v := range b.ops {
		if s.writes(v) && slices.ContainsFunc(g.Inputs(v), func(t graph.TensorID) bool { return copied[g.Tensor(t).Producer] }) {
			copied[v] = true
		}
	}
	for i := range copied {
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			for _, v := range g.Consumers(t) {
				if !copied[v] && !(reader[v] && s.factors(v)[0] != t) && s.repeated(v) == 0 {
					s.fused = true
				}
			}
		}
	}
	for i := range copied {
		s.Copied[i] = true
	}
}

// beforeRepeats leaves of copied what is before heads are repeated for their queries: behind
// that there are as many as queries have. What repeats them is a reader.
func (b *block) beforeRepeats(copied, reader map[graph.OpID]bool) {
	s, g := b.s, b.s.m.Micro
	before := map[graph.OpID]bool{}
	for _, v := range b.ops {
		if copied[v] && s.repeated(v) > 0 {
			for _, t := range g.Inputs(v) {
				b.madeOf(t, before)
			}
			reader[v] = true
		}
	}
	if len(before) == 0 {
		return
	}
	for v := range copied {
		if !before[v] {
			delete(copied, v)
		}
	}
}

// madeOf adds the ops of the block that make t, and what the samples hold of it.
func (b *block) madeOf(t graph.TensorID, made map[graph.OpID]bool) {
	s, g := b.s, b.s.m.Micro
	i := g.Tensor(t).Producer
	if made[i] || !b.inside[t] && !s.kept(i) {
		return
	}
	made[i] = true
	if slices.Contains(b.open, i) {
		return
	}
	for _, x := range g.Inputs(i) {
		b.madeOf(x, made)
	}
}

// queries returns the heads of queries of the batched product i: those of what it reads first
// or of what it gives, [B,heads,...], 0 where neither says so.
func (s *Split) queries(i graph.OpID) (n int64) {
	g := s.m.Micro
	for _, t := range []graph.TensorID{g.Inputs(i)[0], first(g, i)} {
		if shape := g.Tensor(t).Shape; len(shape) == 4 {
			n = max(n, shape[1])
		}
	}
	return n
}

// check reports why so many ranks cannot share out the blocks evenly.
func (s *Split) check(ranks int64) error {
	name, heads := s.m.Micro.Name(), s.Heads
	switch {
	case s.Blocks == 0:
		return fmt.Errorf("graph %s: no attention or feed-forward block can be cut for tensor parallelism", name)
	case s.Width%ranks != 0:
		return fmt.Errorf("graph %s: its blocks can be cut in a divisor of %d, not in %d", name, s.Width, ranks)
	case heads%ranks == 0:
		return nil
	}
	why := ""
	switch {
	case s.trains:
		why = "; ranks with copies of a head are not modelled in training"
	case s.fused:
		why = "; copies of a head are not modelled where one product makes queries, keys and values"
	case ranks%heads == 0 && s.Queries%ranks == 0:
		return nil
	case s.Queries > heads:
		why = fmt.Sprintf(" with copies either; heads of queries are %d", s.Queries)
	}
	return fmt.Errorf("graph %s: heads of keys and values in its attention are %d, which %d ranks cannot share evenly%s", name, heads, ranks, why)
}

// parts returns in how many parts ranks share op i out.
func (s *Split) parts(i graph.OpID, ranks int64) int64 {
	switch {
	case !s.Shared[i] && !s.ByRows[i]:
		return 1
	case s.Copied[i]:
		return min(ranks, s.Heads)
	}
	return ranks
}

// partsOf is parts of a tensor.
func (s *Split) partsOf(t graph.TensorID, ranks int64) int64 {
	switch {
	case !s.divided(t):
		return 1
	case s.Copied[s.m.Micro.Tensor(t).Producer]:
		return min(ranks, s.Heads)
	}
	return ranks
}
