package sequential

import (
	"cmp"
	"slices"

	"placer/graph/unit"
	"placer/nn/vec"
)

// tied are the features by which a unit can learn to follow others, whichever
// device they are on, in the order of a state's weights. Letter: J tied features.
var tied = []int{
	indexOf(deviceFeatures, "counterpart"), indexOf(deviceFeatures, "chain_last"), indexOf(deviceFeatures, "segment_last"), indexOf(deviceFeatures, "layer_last"), indexOf(deviceFeatures, "saved_share"),
	indexOf(deviceFeatures, "earliest"), indexOf(deviceFeatures, "expert_last"), indexOf(deviceFeatures, "block_last"), indexOf(deviceFeatures, "last"), indexOf(deviceFeatures, "fresh"),
}

// logits are what is learned on a graph at one level: a logit per unit and device and a
// weight per unit and tied feature. The logits of a decision are network + free +
// tied . features.
type logits struct {
	s     *instance
	level level
	order []int32   // [T] units by decision
	cell  []int32   // [cells] unit
	of    []int32   // [U] a cell of the unit
	rank  []int32   // [U] along the forward pass
	free  []float32 // [U,D]
	tied  []float32 // [U,J]
	// gradients of the last two, and scratch
	dFree, dTied []float32
}

func newLogits(s *instance, at level, cells *unit.Partition) *logits {
	n, d, j := s.part.NumUnits(), s.d, len(tied)
	l := &logits{
		s: s, level: at, order: s.decided(), cell: make([]int32, cells.NumUnits()), of: make([]int32, n),
		free: make([]float32, n*d), tied: make([]float32, n*j), dFree: make([]float32, n*d), dTied: make([]float32, n*j),
	}
	for c, ops := range cells.Ops {
		l.cell[c] = s.part.Of[ops[0]]
		l.of[l.cell[c]] = int32(c)
	}
	l.rank = s.ranks(l.order)
	return l
}

// ranks orders the units along the forward pass, [U], from the order of their
// decisions: a gradient stands beside what it is the gradient of, a variable beside its
// reader.
func (s *instance) ranks(order []int32) []int32 {
	decision := make([]int, len(order))
	for t, u := range order {
		decision[u] = t
	}
	key := slices.Clone(decision)
	for u := range key {
		switch id := int32(u); {
		case s.is(id, unit.Backward) && s.counterpart[u] != none:
			key[u] = decision[s.counterpart[u]]
		case s.is(id, unit.Weights):
			neighbours, _ := s.exchanges.Neighbours(id)
			if k := slices.IndexFunc(neighbours, func(v int32) bool { return s.is(v, unit.Forward) }); k >= 0 {
				key[u] = decision[neighbours[k]]
			}
		}
	}
	at := make([]int32, len(order))
	for u := range at {
		at[u] = int32(u)
	}
	slices.SortStableFunc(at, func(a, b int32) int { return cmp.Compare(key[a], key[b]) })
	rank := make([]int32, len(order))
	for r, u := range at {
		rank[u] = int32(r)
	}
	return rank
}

// sum writes network + free + tied . features for a decision on u, [D].
func (l *logits) sum(u int32, scores, features, to []float32) {
	free, weights := l.freeOf(l.free, u), l.tiedOf(l.tied, u)
	for i := range to {
		to[i] = scores[i] + free[i] + vec.Dot(weights, l.tiedOf(features, int32(i)))
	}
}

// freeOf returns row u of x, [U,D].
func (l *logits) freeOf(x []float32, u int32) []float32 { return x[int(u)*l.s.d : (int(u)+1)*l.s.d] }

// tiedOf returns row u of x, [U,J].
func (l *logits) tiedOf(x []float32, u int32) []float32 {
	return x[int(u)*len(tied) : (int(u)+1)*len(tied)]
}

// fit takes a step of the gradient of the elite's mean log likelihood, or none where
// stopped says so, and reports whether it did.
func (l *logits) fit(all []*elite, rate, tiedRate float32, stopped func() bool) bool {
	if len(all) == 0 {
		return true
	}
	d := l.s.d
	clear(l.dFree)
	clear(l.dTied)
	z, p, features := make([]float32, d), make([]float32, d), make([]float32, d*len(tied))
	share := 1 / float32(len(all))
	for _, x := range all {
		if stopped() {
			return false
		}
		for t, u := range l.order {
			x.of.tied.get(t*d, features)
			ok := x.of.ok[t*d : (t+1)*d]
			l.sum(u, x.of.scores[t*d:(t+1)*d], features, z)
			softmax(z, ok, p)
			p[x.of.chosen[t]] -= 1
			free, weights := l.freeOf(l.dFree, u), l.tiedOf(l.dTied, u)
			for i, q := range p {
				if ok[i] {
					free[i] -= q * share
					vec.Axpy(weights, l.tiedOf(features, int32(i)), -q*share)
				}
			}
		}
	}
	vec.Axpy(l.free, l.dFree, rate)
	vec.Axpy(l.tied, l.dTied, rate*tiedRate)
	return true
}
