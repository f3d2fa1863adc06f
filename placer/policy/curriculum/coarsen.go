package curriculum

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/internal/unionfind"
)

// number makes a partition of labels below n, ordered by first op.
func number(label []int, n int) *unit.Partition {
	unitOf := make([]int32, n)
	for k := range unitOf {
		unitOf[k] = -1
	}
	p := &unit.Partition{Of: make([]int32, len(label))}
	for i, k := range label {
		if unitOf[k] < 0 {
			unitOf[k] = int32(len(p.Ops))
			p.Ops = append(p.Ops, nil)
		}
		p.Of[i] = unitOf[k]
		p.Ops[unitOf[k]] = append(p.Ops[unitOf[k]], graph.OpID(i))
	}
	return p
}

// joiner merges units of a partition.
type joiner struct {
	graph   *graph.Graph
	base    *unit.Partition
	sets    unionfind.Sets // of the units of base
	seconds []float64
	total   float64
}

func newJoiner(g *graph.Graph, p *unit.Partition, seconds []float64) *joiner {
	j := &joiner{graph: g, base: p, sets: unionfind.New(p.NumUnits()), seconds: make([]float64, p.NumUnits())}
	for u, ops := range p.Ops {
		for _, i := range ops {
			j.seconds[u] += seconds[i]
		}
		j.total += j.seconds[u]
	}
	return j
}

// join merges the units of u and v; the lower one leads.
func (j *joiner) join(u, v int32) {
	if u, v = j.sets.Join(u, v); u != v {
		j.seconds[u] += j.seconds[v]
	}
}

// joinCounterparts merges each unit of level l, the joiner's, with the unit of its
// gradients and with the weights that only the two read.
func (j *joiner) joinCounterparts(h *unit.Hierarchy, l unit.Level) {
	for u, v := range h.Counterparts[l] {
		if v >= 0 {
			j.join(int32(u), v)
		}
	}
	readers := make([][]int32, len(j.sets))
	for u, ws := range h.Reads[l] {
		for _, w := range ws {
			if r := j.sets.Root(int32(u)); !slices.Contains(readers[w], r) {
				readers[w] = append(readers[w], r)
			}
		}
	}
	for w, rs := range readers {
		if len(rs) == 1 {
			j.join(int32(w), rs[0])
		}
	}
}

// absorb merges every unit that takes less than share of the whole time into
// the neighbour it exchanges most bytes with, the lower of equals, until none is
// left that has a neighbour.
func (j *joiner) absorb(share float64) {
	type edge struct {
		a, b  int32
		bytes int64
	}
	for {
		var edges []edge
		link := func(p, q graph.OpID, bytes int64) {
			a, b := j.sets.Root(j.base.Of[p]), j.sets.Root(j.base.Of[q])
			if a == b {
				return
			}
			edges = append(edges, edge{a, b, bytes}, edge{b, a, bytes})
		}
		for i := range j.graph.NumOps() {
			for _, t := range j.graph.Inputs(graph.OpID(i)) {
				x := j.graph.Tensor(t)
				link(x.Producer, graph.OpID(i), int64(x.Bytes)+1)
			}
			for _, c := range j.graph.Control(graph.OpID(i)) {
				link(c, graph.OpID(i), 1)
			}
		}
		slices.SortFunc(edges, func(x, y edge) int {
			if x.a != y.a {
				return int(x.a - y.a)
			}
			return int(x.b - y.b)
		})
		merged := false
		for lo := 0; lo < len(edges); {
			a, hi := edges[lo].a, lo
			best, most := int32(-1), int64(-1)
			for hi < len(edges) && edges[hi].a == a {
				b, sum := edges[hi].b, int64(0)
				for ; hi < len(edges) && edges[hi].a == a && edges[hi].b == b; hi++ {
					sum += edges[hi].bytes
				}
				if sum > most {
					best, most = b, sum
				}
			}
			if j.seconds[j.sets.Root(a)] < share*j.total {
				j.join(a, best)
				merged = true
			}
			lo = hi
		}
		if !merged {
			return
		}
	}
}

// partition returns the merged units, ordered by their first op.
func (j *joiner) partition() *unit.Partition {
	label := make([]int, len(j.base.Of))
	for i, u := range j.base.Of {
		label[i] = int(j.sets.Root(u))
	}
	return number(label, len(j.sets))
}
