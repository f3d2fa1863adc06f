package strategy

import (
	"fmt"
	"maps"
	"slices"

	"placer/graph"
	"placer/units"
)

// copies finds what of the block makes keys and values that groups of queries share: where
// ranks are more than heads of keys and values, each rank has the one head that its queries
// read, and others have it too. One product may make queries too: of its columns a rank has its
// part of queries and the copies. Gradients of such heads would have to be added up, so there
// are none in a step with a backward pass.
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
	b.mixtures(copied, reader)
	for i := range copied {
		if _, mixed := s.mixed[i]; !mixed {
			s.Copied[i] = true
		}
	}
}

// mixtures finds which of copied make queries too, and of what share.
func (b *block) mixtures(copied, reader map[graph.OpID]bool) {
	s, g := b.s, b.s.m.Micro
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(copied))) {
		var all columns
		mixed, bytes := false, units.Bytes(0) // of what tensors become that are read in parts
		through := 0                          // readers that make both too
		t, end := g.Outputs(i)
		several := end-t > 1
		for ; t < end; t++ {
			var of columns
			for _, v := range g.Consumers(t) {
				size := g.Tensor(first(g, v)).Bytes
				if x, ok := s.mixed[v]; ok {
					through, all = through+1, x
				} else if copied[v] || reader[v] && s.factors(v)[0] != t || s.repeated(v) > 0 {
					of.copied += int64(size)
				} else {
					of.own += int64(size)
				}
			}
			mixed = mixed || of.own > 0 || through > 0
			if several { // each tensor is one or the other
				if of.own > 0 && of.copied > 0 {
					s.fused = true
				} else if of.copied > 0 {
					of, s.copiedOut[t] = columns{copied: int64(g.Tensor(t).Bytes)}, true
				} else {
					of = columns{own: int64(g.Tensor(t).Bytes)}
				}
			}
			bytes += g.Tensor(t).Bytes
			all.own, all.copied = all.own+of.own, all.copied+of.copied
		}
		if !mixed {
			continue
		}
		if through > 1 || through == 0 && all.own+all.copied != int64(bytes) {
			s.fused = true
		}
		s.mixed[i] = all.reduced()
	}
}

// columns are those of a product that makes queries as well as keys and values, in proportion.
type columns struct{ own, copied int64 }

func (c columns) reduced() columns {
	if n := gcd(c.own, c.copied); n > 0 {
		return columns{c.own / n, c.copied / n}
	}
	return c
}

// fraction is a part of a whole.
type fraction struct{ num, den int64 }

// of returns the part of x, rounded up.
func (f fraction) of(x int64) int64 { return ceil(x*f.num, f.den) }

// over returns an n-th of the part.
func (f fraction) over(n int64) fraction { return fraction{f.num, f.den * n} }

// part returns what one of ranks has of these columns, where heads copies are told apart.
func (c columns) part(ranks, heads int64) fraction {
	return fraction{c.own*heads + c.copied*ranks, (c.own + c.copied) * ranks * heads}
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

// most returns the number of ranks of which all that can share out the blocks evenly are divisors:
// what the cut dimensions have in common, with the heads, of queries where ranks may have copies of
// those of keys and values.
func (s *Split) most() int64 {
	heads := s.Heads
	if !s.trains && !s.fused && heads > 0 && s.Queries%heads == 0 {
		heads = max(heads, s.Queries)
	}
	return gcd(s.Width, heads)
}

// check reports why so many ranks cannot share out the blocks evenly.
func (s *Split) check(ranks int64) error {
	name, heads := s.m.Micro.Name(), s.Heads
	switch {
	case s.Blocks == 0:
		return fmt.Errorf("graph %s: no attention or feed-forward block can be cut for tensor parallelism", name)
	case s.Width%ranks != 0:
		return fmt.Errorf("graph %s: its blocks can be cut in a divisor of %d, not in %d", name, s.most(), ranks)
	case heads%ranks == 0:
		return nil
	}
	why := ""
	switch {
	case s.trains:
		why = "; ranks with copies of a head are not modelled in training"
	case s.fused:
		why = "; copies of a head are not modelled where columns of one product that makes queries too are not told apart"
	case ranks%heads == 0 && s.Queries%ranks == 0:
		return nil
	case s.Queries > heads:
		why = fmt.Sprintf(" with copies either; heads of queries are %d", s.Queries)
	}
	return fmt.Errorf("graph %s: heads of keys and values in its attention are %d, which %d ranks cannot share evenly%s", name, heads, ranks, why)
}

// partOf returns what one of ranks has of op i.
func (s *Split) partOf(i graph.OpID, ranks int64) fraction {
	c, mixed := s.mixed[i]
	switch {
	case !s.Shared[i] && !s.ByRows[i]:
		return fraction{1, 1}
	case mixed:
		return c.part(ranks, min(ranks, s.Heads))
	case s.Copied[i]:
		return fraction{1, min(ranks, s.Heads)}
	}
	return fraction{1, ranks}
}

// partOfTensor is partOf of a tensor.
func (s *Split) partOfTensor(t graph.TensorID, ranks int64) fraction {
	p := s.m.Micro.Tensor(t).Producer
	_, end := s.m.Micro.Outputs(p)
	c, mixed := s.mixed[p]
	switch {
	case !s.divided(t):
		return fraction{1, 1}
	case s.Copied[p] || s.copiedOut[t]:
		return fraction{1, min(ranks, s.Heads)}
	case mixed && end == first(s.m.Micro, p)+1:
		return c.part(ranks, min(ranks, s.Heads))
	}
	return fraction{1, ranks}
}
