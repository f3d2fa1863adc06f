package sequential

import (
	"math/rand/v2"

	"placer/graph"
)

// rule names a rule of thumb.
type rule uint8

const (
	listRule   rule = iota // a list scheduler's
	expertRule             // the human expert's cut
	blockRule              // a balanced cut along the forward pass
)

// heuristic is the prior of a rollout: a rule of thumb that says for each decision
// which device it would choose and how much worse the others are. The policy reads
// both and has learned when to follow. Rollouts with different priors differ as wholes,
// where rollouts of one policy differ by chance, unit by unit.
type heuristic struct {
	rule rule
	// load weighs, for list scheduling, the work that a device would have against the
	// time at which the unit's first node would end there, and transfers the time of
	// the transfers that the device would need.
	load, transfers float64
	// colocate sends gradients where the forward part is, and variables where they are
	// read first.
	colocate bool
	// insertion lets a node start before what was decided earlier, where there is room.
	insertion bool
	// learned weighs what the policy has learned: at 0 it follows the prior.
	learned float32
}

// heuristics returns all priors that policies are trained with, in a fixed order.
func heuristics() []heuristic {
	all := []heuristic{{rule: expertRule, learned: 1}, {rule: blockRule, learned: 1}}
	for _, colocate := range []bool{true, false} {
		for _, load := range []float64{0, 0.1, 0.3, 1} {
			for _, transfers := range []float64{0, 1, 4} {
				for _, insertion := range []bool{false, true} {
					all = append(all, heuristic{listRule, load, transfers, colocate, insertion, 1})
				}
			}
		}
	}
	return all
}

// perPrior is the number of rollouts with the same prior in a step of PPO: what a
// rollout is worth shows beside others of the same prior.
const perPrior = 4

// drawHeuristics returns k priors at random, each per times in a row.
func drawHeuristics(r *rand.Rand, k, per int) []heuristic {
	all, drawn := heuristics(), make([]heuristic, k)
	for i := range drawn {
		if i%per > 0 {
			drawn[i] = drawn[i-1]
		} else {
			drawn[i] = all[r.IntN(len(all))]
		}
	}
	return drawn
}

// choose returns the device that x's prior would choose for unit u, whose node v is
// next (or none), and leaves in cost, [D], what the prior thinks of each. decided is
// the time of the transfers that u exchanges with units decided.
func (x *state) choose(u int32, v graph.OpID, decided float64, ok []bool) int32 {
	s, to := x.s, x.fixed(u, v, ok)
	x.price(u, v, decided)
	if to == none || !ok[to] {
		return x.cheapest(ok)
	}
	for d := range s.d {
		x.cost[d] += s.own[u]
	}
	x.cost[to] = min(x.cost[to], x.cost[x.cheapest(ok)]) - s.own[u] // what is chosen costs least
	return to
}

// follow returns the device that choose would return, and finds out no more than that
// needs: most decisions of a prior do not depend on what devices cost.
func (x *state) follow(u int32, v graph.OpID, ok []bool) int32 {
	s := x.s
	if s.unit[v] != u {
		v = none
	}
	if to := x.fixed(u, v, ok); to != none && ok[to] {
		return to
	}
	x.expectLoads(u)
	decided := 0.0
	if x.prior.rule == listRule {
		if x.prior.transfers != 0 {
			decided = x.contacts(u)
		}
		if v != none {
			x.arrivals(v)
			if x.prior.insertion {
				for d := range s.d {
					x.start[d] = x.devices[d].Earliest(x.ready[d], s.seconds[d][v])
				}
			}
		}
	}
	x.price(u, v, decided)
	return x.cheapest(ok)
}

// fixed returns the device that x's prior chooses for unit u whatever devices cost, that of
// its group or of its counterpart, or none.
func (x *state) fixed(u int32, v graph.OpID, ok []bool) int32 {
	switch x.prior.rule {
	case expertRule:
		return x.grouped(byExpert, u, ok)
	case blockRule:
		return x.grouped(byBlock, u, ok)
	}
	switch c := x.s.counterpart[u]; {
	case !x.prior.colocate:
		return none
	case c != none:
		return x.device[c]
	case v == none:
		return x.last
	}
	return none
}

// price leaves in cost, [D], what x's prior thinks of each device for unit u.
func (x *state) price(u int32, v graph.OpID, decided float64) {
	s := x.s
	for d := range s.d {
		x.cost[d] = x.expected[d] + s.work[d][u]
	}
	if x.prior.rule != listRule {
		return
	}
	for d := range s.d {
		x.cost[d] = x.prior.load*x.cost[d] + x.prior.transfers*(decided-x.contact[d])
		if v != none {
			start := x.start[d]
			if !x.prior.insertion {
				start = max(x.ready[d], x.devices[d].Free())
			}
			x.cost[d] += start + s.seconds[d][v]
		}
	}
}

// cheapest returns the allowed device of the lowest cost, the first of equals.
func (x *state) cheapest(ok []bool) int32 {
	best := int32(none)
	for d := range ok {
		if ok[d] && (best < 0 || x.cost[d] < x.cost[best]) {
			best = int32(d)
		}
	}
	return best
}

// grouped returns the device of u's group of a kind, an empty one for a group that has
// none, or none.
func (x *state) grouped(kind int, u int32, ok []bool) int32 {
	if d := x.decided[kind].last[x.s.groups[kind].of[u]]; d != none {
		return d
	}
	for d := range ok {
		if ok[d] && x.number[d] == none {
			return int32(d)
		}
	}
	return none
}
