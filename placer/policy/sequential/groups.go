package sequential

import "placer/graph/unit"

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
	layer, expert, block := s.majorities()
	for k, of := range [numGroupings][]int32{
		byChain:   p.Units.Parents(s.level, unit.Chain),
		bySegment: p.Units.Parents(s.level, max(s.level, unit.Segment)),
		byLayer:   layer,
		byExpert:  expert,
		byBlock:   block,
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

// majorities returns the layer that most of each unit's time belongs to, [U], the graph's
// annotation, else that of its counterpart, else 0; and the device of most of its time in
// the expert's placement and in the balanced cut, [U]. Of equals the lower counts.
func (s *instance) majorities() (layer, expert, block []int32) {
	n, last, seconds := s.part.NumUnits(), int32(0), s.problem.Evaluator.OpSeconds(0)
	for _, l := range s.layer {
		last = max(last, l)
	}
	layer, expert, block = make([]int32, n), make([]int32, n), make([]int32, n)
	layers, experts, blocks := make([]float64, last+1), make([]float64, s.d), make([]float64, s.d) // votes
	for u, ops := range s.part.Ops {
		clear(layers)
		clear(experts)
		clear(blocks)
		for _, i := range ops {
			w := seconds[i] + 1e-12
			layers[s.layer[i]] += w
			experts[s.expert[i]] += w
			blocks[s.block[i]] += w
		}
		layers[0] = 0 // ops of no layer
		layer[u], expert[u], block[u] = most(layers), most(experts), most(blocks)
	}
	for u, q := range s.counterpart {
		if layer[u] == 0 && q >= 0 {
			layer[u] = layer[q]
		}
	}
	return layer, expert, block
}

// labels returns what a placement, [N], decides for each unit, [U]: the device of
// most of its time, the lower of equals.
func (s *instance) labels(device []uint8) []int32 {
	of, votes, seconds := make([]int32, s.part.NumUnits()), make([]float64, s.d), s.problem.Evaluator.OpSeconds(0)
	for u, ops := range s.part.Ops {
		clear(votes)
		for _, i := range ops {
			votes[device[i]] += seconds[i] + 1e-12
		}
		of[u] = most(votes)
	}
	return of
}

// most returns where votes are highest, the first of equals.
func most(votes []float64) (at int32) {
	for l, v := range votes {
		if v > votes[at] {
			at = int32(l)
		}
	}
	return at
}
