package transfer

import (
	"math/rand/v2"

	"placer/graph"
)

// Rule names a rule of thumb.
type Rule uint8

// The rules of thumb that samples are guided by.
const (
	ByList   Rule = iota // the list scheduler's, by Balance, Cling and Bound
	ByExpert             // the human expert's cut
	ByBlock              // a balanced cut along the forward pass
)

// Guide is the rule of thumb that a sample is advised by. The policy reads what it
// advises for each decision, and how much worse than that the other devices are by
// the same rule, and has learned when to follow. Samples with different guides
// differ as wholes, where samples of one policy differ by chance, unit by unit.
type Guide struct {
	Rule Rule
	// Balance weighs, for ByList, the work that a device would have against the
	// time at which the unit's first node would end there, and Cling the time of
	// the transfers that the device would need.
	Balance, Cling float64
	// Bound sends gradients where the forward part is, and variables where they are
	// read first.
	Bound bool
	// Gaps lets a node start before what was decided earlier, where there is room.
	Gaps bool
	// Own weighs what the policy has learned: at 0 it takes the advice.
	Own float32
}

// advice returns the device that x's guide would choose for unit u, whose node v
// is next (or none), and leaves in cost, [D], what the guide thinks of each. decided
// is the time of the transfers that u exchanges with units decided.
func (x *state) advice(u int32, v graph.OpID, decided float64, ok []bool) int32 {
	s := x.s
	for d := range s.d {
		x.cost[d] = x.total[d] + s.work[d][u]
	}
	to := int32(none)
	switch x.guide.Rule {
	case ByExpert:
		to = x.follow(&x.expert, s.expert.of[u], ok)
	case ByBlock:
		to = x.follow(&x.block, s.block.of[u], ok)
	default:
		for d := range s.d {
			x.cost[d] = x.guide.Balance*x.cost[d] + x.guide.Cling*(decided-x.contact[d])
			if v != none {
				start := x.start[d]
				if !x.guide.Gaps {
					start = max(x.ready[d], x.devices[d].free)
				}
				x.cost[d] += start + s.seconds[d][v]
			}
		}
		if x.guide.Bound {
			if p := s.partner[u]; p != none {
				to = x.device[p]
			} else if v == none {
				to = x.last
			}
		}
	}
	if to != none && ok[to] {
		for d := range s.d { // what is advised costs least
			x.cost[d] += s.own[u]
		}
		x.cost[to] = min(x.cost[to], x.least(ok)) - s.own[u]
		return to
	}
	for d := range s.d {
		if ok[d] && (to == none || !ok[to] || x.cost[d] < x.cost[to]) {
			to = int32(d)
		}
	}
	return to
}

// least returns the lowest cost of the allowed devices.
func (x *state) least(ok []bool) float64 {
	best := -1
	for d := range ok {
		if ok[d] && (best < 0 || x.cost[d] < x.cost[best]) {
			best = d
		}
	}
	return x.cost[best]
}

// follow returns the device of group k, or a fresh one for a group that has none,
// or none.
func (x *state) follow(r *relatives, k int32, ok []bool) int32 {
	if d := r.last[k]; d != none {
		return d
	}
	for d := range ok {
		if ok[d] && x.number[d] == none {
			return int32(d)
		}
	}
	return none
}

// What list guides are made of.
var (
	balances = []float64{0, 0.1, 0.3, 1}
	clings   = []float64{0, 1, 4}
)

// Guides returns all guides that policies are trained with, in a fixed order.
func Guides() []Guide {
	gs := []Guide{{Rule: ByExpert, Own: 1}, {Rule: ByBlock, Own: 1}}
	for _, bound := range []bool{true, false} {
		for _, b := range balances {
			for _, c := range clings {
				for _, gaps := range []bool{false, true} {
					gs = append(gs, Guide{ByList, b, c, bound, gaps, 1})
				}
			}
		}
	}
	return gs
}

// draw returns k of them at random, each together times in a row: what a sample is
// worth shows beside others of the same guide.
func draw(r *rand.Rand, k int) []Guide {
	all, gs := Guides(), make([]Guide, k)
	for i := range gs {
		if i%together > 0 {
			gs[i] = gs[i-1]
		} else {
			gs[i] = all[r.IntN(len(all))]
		}
	}
	return gs
}

// together is the number of samples with the same guide in a step of training.
const together = 4
