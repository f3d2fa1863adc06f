package anneal

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
)

// neighbourhood is what moves know of a problem at one granularity: the decisions are
// the units of a fine level, the groups those of a coarser one. It is shared by
// replicas and does not change.
type neighbourhood struct {
	fine        *unit.Partition
	group       [][]int32 // [groups] decisions, in order
	groupOf     []int32   // [decisions]
	place       []int32   // [decisions] index in the group
	counterpart []int32   // [decisions] the other direction's, or -1
	// partial lists, for each decision of the forward pass, the gradients of weights
	// alone that are made from what it reads: those that have it for a counterpart and
	// are not its own, [decisions].
	partial [][]int32
	// reads lists the decisions with the weights that each group reads, and own
	// those that each decision reads, [decisions].
	reads, own [][]int32
	// line lists the decisions of the forward pass in order; all where roles are
	// not known.
	line []int32
	// weights lists the decisions that hold weights, and readers the decisions that
	// read each of them, [decisions].
	weights []int32
	readers [][]int32
	// near lists, for each decision, those it exchanges most bytes with.
	near *schedule.Communication
	// seconds is the time of each decision on the first device, opSeconds that of each op.
	seconds, opSeconds []float64
}

// mostNear bounds the neighbours that a decision knows.
const mostNear = 8

// newNeighbourhood returns that of the units of a level in groups; groupOf is the group of each.
func newNeighbourhood(p *plan.Problem, fine unit.Level, groupOf []int32, groups int) *neighbourhood {
	f := p.Units.Levels[fine]
	n := f.NumUnits()
	t := &neighbourhood{
		fine: f, groupOf: groupOf, place: make([]int32, n), counterpart: make([]int32, n),
		group: make([][]int32, groups), readers: make([][]int32, n), seconds: make([]float64, n), opSeconds: p.Evaluator.OpSeconds(0),
	}
	t.reads = make([][]int32, len(t.group))
	for u := range int32(n) {
		c := t.groupOf[u]
		t.place[u] = int32(len(t.group[c]))
		t.group[c] = append(t.group[c], u)
		t.counterpart[u] = -1
		if ps := p.Units.Counterparts[fine]; ps != nil {
			t.counterpart[u] = ps[u]
		}
	}
	t.partial = make([][]int32, n)
	for u, q := range t.counterpart {
		if q >= 0 && t.counterpart[q] != int32(u) {
			t.partial[q] = append(t.partial[q], int32(u))
		}
	}
	for i, s := range t.opSeconds {
		t.seconds[f.Of[i]] += s
	}
	t.own = make([][]int32, n)
	for u := range int32(n) {
		if roles := p.Units.Roles[fine]; roles == nil || roles[u] == unit.Forward {
			t.line = append(t.line, u)
		}
	}
	if rs := p.Units.Reads[fine]; rs != nil {
		t.own = rs
		for u, r := range rs {
			c := t.groupOf[u]
			for _, w := range r {
				t.readers[w] = append(t.readers[w], int32(u))
				if !slices.Contains(t.reads[c], w) {
					t.reads[c] = append(t.reads[c], w)
				}
			}
		}
		for w := range int32(n) {
			if len(t.readers[w]) > 0 {
				t.weights = append(t.weights, w)
			}
		}
	}
	t.near = near(p, f.Of, n)
	return t
}

// expand writes the placement of the decisions x into device, [N].
func (t *neighbourhood) expand(x []uint8, device []uint8) {
	for u, ops := range t.fine.Ops {
		for _, i := range ops {
			device[i] = x[u]
		}
	}
}

// decisions reads the decisions off a placement, [N]: for each, the device of most of its
// time. votes, [D], is scratch.
func (t *neighbourhood) decisions(device []uint8, votes []float64) []uint8 {
	out := make([]uint8, len(t.seconds))
	for u, ops := range t.fine.Ops {
		out[u] = t.most(ops, device, votes)
	}
	return out
}

// most returns the device of most of the time of ops. votes, [D], is scratch.
func (t *neighbourhood) most(ops []graph.OpID, device []uint8, votes []float64) (d uint8) {
	clear(votes)
	for _, i := range ops {
		votes[device[i]] += t.opSeconds[i] + 1e-15
	}
	for k := range votes {
		if votes[k] > votes[d] {
			d = uint8(k)
		}
	}
	return d
}
