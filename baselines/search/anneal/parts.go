package anneal

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// mostParts bounds the decisions that a placement may add where it has ops of one cell on
// several devices, as a share of the cells: one that has most cells so is no placement of cells.
const mostParts = 0.5

// apart returns t for walks from a placement, [N], that has ops of a decision on several
// devices: what is not where most of it is becomes a decision of its own, one for each device,
// which lies behind it in its group and in the forward pass. Walks from there begin with the
// placement as it is. It returns t itself where there is no such decision, or too many.
func (t *neighbourhood) apart(p *plan.Problem, device []uint8, votes []float64) *neighbourhood {
	of, parts := t.partsOf(device, votes)
	n, all := len(t.seconds), len(t.seconds)
	for _, q := range parts {
		all += len(q)
	}
	if all == n || float64(all-n) > mostParts*float64(n) {
		return t
	}
	s := *t
	s.fine = &unit.Partition{Of: of, Ops: make([][]graph.OpID, all)}
	s.seconds, s.groupOf, s.place = make([]float64, all), make([]int32, all), make([]int32, all)
	for i, u := range of {
		s.fine.Ops[u] = append(s.fine.Ops[u], graph.OpID(i))
		s.seconds[u] += s.opSeconds[i]
	}
	follow := func(us []int32) (out []int32) {
		for _, u := range us {
			out = append(append(out, u), parts[u]...)
		}
		return out
	}
	s.group = make([][]int32, len(t.group))
	for c, g := range t.group {
		s.group[c] = follow(g)
		for k, u := range s.group[c] {
			s.groupOf[u], s.place[u] = int32(c), int32(k)
		}
	}
	s.line = follow(t.line)
	s.counterpart = slices.Clone(t.counterpart)
	for range all - n {
		s.counterpart = append(s.counterpart, none)
	}
	s.partial, s.own, s.readers = longer(t.partial, all), longer(t.own, all), longer(t.readers, all)
	s.near = near(p, of, all)
	return &s
}

// partsOf returns the decision of each op, [N], once those that lie on several devices are
// taken apart, and those that each decision, [U], has added.
func (t *neighbourhood) partsOf(device []uint8, votes []float64) (of []int32, parts [][]int32) {
	of, parts = slices.Clone(t.fine.Of), make([][]int32, len(t.seconds))
	next := int32(len(t.seconds))
	added := make([]int32, len(votes)) // [D] the decision of what is on a device
	for u, ops := range t.fine.Ops {
		home := t.most(ops, device, votes)
		for d := range added {
			added[d] = none
		}
		for _, i := range ops {
			d := device[i]
			if d == home {
				continue
			}
			if added[d] == none {
				added[d] = next
				parts[u] = append(parts[u], next)
				next++
			}
			of[i] = added[d]
		}
	}
	return of, parts
}

// longer returns a copy of xs with n elements.
func longer(xs [][]int32, n int) [][]int32 {
	return append(slices.Clone(xs), make([][]int32, n-len(xs))...)
}

// near returns, for each of n decisions, those it exchanges most bytes with; of, [N], is the
// decision of each op.
func near(p *plan.Problem, of []int32, n int) *schedule.Communication {
	exchanged := func(b units.Bytes) float64 { return float64(b) + 1 }
	return schedule.NewCommunication(n, exchanged, schedule.Reads(p.Graph, of)).Heaviest(mostNear)
}
