package sequential

import (
	"placer/graph"
	"placer/graph/unit"
)

// The groupings of units that features tell of.
const (
	byChain = iota
	bySegment
	byLayer
	byExpert // the device that a human expert would choose
	byBlock  // the block of a balanced cut along the forward pass
	numGroupings
)

// grouping assigns units to groups.
type grouping struct {
	of      []int32   // [U]
	seconds []float64 // [groups]
	place   []float64 // [U] 0..1 within the group, by time
}

// group groups the units by what the graph says and by two rules of thumb. Following
// either rule is one way to place the graph; which of them to follow where, and where
// to leave both, the policy has to learn.
func (s *instance) group() {
	p := s.problem
	for k, of := range [numGroupings][]int32{
		byChain:   p.Units.Parents(s.level, unit.Chain),
		bySegment: p.Units.Parents(s.level, max(s.level, unit.Segment)),
		byLayer:   s.layers(),
		byExpert:  s.labels(s.expert),
		byBlock:   s.labels(s.block),
	} {
		s.groups[k] = s.grouping(of)
	}
}

// grouping sums the times of the groups that of, [U], assigns units to.
func (s *instance) grouping(of []int32) grouping {
	x := grouping{of: of, place: make([]float64, len(of))}
	for u, k := range of {
		for int(k) >= len(x.seconds) {
			x.seconds = append(x.seconds, 0)
		}
		x.place[u] = x.seconds[k] + s.own[u]/2
		x.seconds[k] += s.own[u]
	}
	for u, k := range of {
		x.place[u] /= max(x.seconds[k], 1e-12)
	}
	return x
}

// layers returns the layer that most of each unit's time belongs to, [U]: the
// graph's annotation, else that of its counterpart, else 0.
func (s *instance) layers() []int32 {
	g, last := s.problem.Graph, int32(0)
	for i := range g.NumOps() {
		last = max(last, g.Op(graph.OpID(i)).Layer)
	}
	of := s.majority(int(last)+1, func(i graph.OpID) int32 {
		if l := g.Op(i).Layer; l > 0 {
			return l
		}
		return none
	})
	for u, q := range s.counterpart {
		if of[u] == 0 && q >= 0 {
			of[u] = of[q]
		}
	}
	return of
}

// labels returns what a placement, [N], decides for each unit, [U]: the device of
// most of its time.
func (s *instance) labels(device []uint8) []int32 {
	return s.majority(s.d, func(i graph.OpID) int32 { return int32(device[i]) })
}

// majority returns the label, of n, that most of each unit's time has, [U]: the lower
// of equals, 0 for a unit without labels. label returns none for an op without one.
func (s *instance) majority(n int, label func(graph.OpID) int32) []int32 {
	seconds := s.problem.Evaluator.OpSeconds(0)
	of, votes := make([]int32, s.part.NumUnits()), make([]float64, n)
	for u, ops := range s.part.Ops {
		clear(votes)
		for _, i := range ops {
			if l := label(i); l != none {
				votes[l] += seconds[i] + 1e-12
			}
		}
		for l := range votes {
			if votes[l] > votes[of[u]] {
				of[u] = int32(l)
			}
		}
	}
	return of
}
