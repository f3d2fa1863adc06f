package anneal

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// terrain is what moves know of a problem at one granularity: the decisions are
// the units of a fine level, the groups those of a coarser one. It is shared by
// walkers and does not change.
type terrain struct {
	fine    *unit.Partition
	group   [][]int32 // [groups] decisions, in order
	groupOf []int32   // [decisions]
	place   []int32   // [decisions] index in the group
	partner []int32   // [decisions] the other direction's, or -1
	// partial lists, for each decision of the forward pass, the gradients of weights
	// alone that are made from what it reads: those that have it for a partner and
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
	near [][]int32
	// seconds is the time of each decision on the first device.
	seconds []float64
}

// mostNear bounds the neighbours that a decision knows.
const mostNear = 8

func newTerrain(p *plan.Problem, fine, coarse unit.Level) *terrain {
	f := p.Units.Levels[fine]
	n := f.NumUnits()
	t := &terrain{
		fine: f, groupOf: p.Units.Parents(fine, coarse), place: make([]int32, n), partner: make([]int32, n),
		group: make([][]int32, p.Units.Levels[coarse].NumUnits()), readers: make([][]int32, n), seconds: make([]float64, n),
	}
	t.reads = make([][]int32, len(t.group))
	for u := range int32(n) {
		c := t.groupOf[u]
		t.place[u] = int32(len(t.group[c]))
		t.group[c] = append(t.group[c], u)
		t.partner[u] = -1
		if ps := p.Units.Partners[fine]; ps != nil {
			t.partner[u] = ps[u]
		}
	}
	t.partial = make([][]int32, n)
	for u, q := range t.partner {
		if q >= 0 && t.partner[q] != int32(u) {
			t.partial[q] = append(t.partial[q], int32(u))
		}
	}
	for i, s := range p.Evaluator.OpSeconds(0) {
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
	t.near = neighbours(p.Graph, f)
	return t
}

// neighbours returns, for each unit of f, those it exchanges most bytes with.
func neighbours(g *graph.Graph, f *unit.Partition) [][]int32 {
	type edge struct {
		a, b  int32
		bytes int64
	}
	var edges []edge
	for i := range g.NumOps() {
		b := f.Of[i]
		for _, x := range g.Inputs(graph.OpID(i)) {
			y := g.Tensor(x)
			if a := f.Of[y.Producer]; a != b {
				edges = append(edges, edge{a, b, int64(y.Bytes) + 1}, edge{b, a, int64(y.Bytes) + 1})
			}
		}
	}
	slices.SortFunc(edges, func(x, y edge) int {
		if x.a != y.a {
			return int(x.a - y.a)
		}
		return int(x.b - y.b)
	})
	merged := edges[:0]
	for _, e := range edges {
		if k := len(merged) - 1; k >= 0 && merged[k].a == e.a && merged[k].b == e.b {
			merged[k].bytes += e.bytes
			continue
		}
		merged = append(merged, e)
	}
	slices.SortStableFunc(merged, func(x, y edge) int {
		switch {
		case x.a != y.a:
			return int(x.a - y.a)
		case x.bytes > y.bytes:
			return -1
		case x.bytes < y.bytes:
			return 1
		}
		return 0
	})
	near := make([][]int32, f.NumUnits())
	for _, e := range merged {
		if len(near[e.a]) < mostNear {
			near[e.a] = append(near[e.a], e.b)
		}
	}
	return near
}
