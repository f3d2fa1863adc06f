package placer

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// stage is one granularity of the policy's training.
type stage struct {
	name  string
	part  *unit.Partition
	chain *unit.Partition // contains part
	share float64         // of the budget
}

// curriculum returns the stages of a policy that decides at level l, coarse to
// fine: first a forward chain together with its gradients and the weights that
// nobody else reads, then chains, and so on down to l. Every stage's units are
// nested in the stage's before. Units too small to matter belong to the
// neighbour that they exchange most bytes with.
func curriculum(g *graph.Graph, h *unit.Hierarchy, l unit.Level, seconds []float64) []stage {
	chain := h.Levels[unit.Chain]
	coarse := newJoiner(g, chain, seconds)
	coarse.joinPartners(h)
	coarse.absorb(1e-3)
	stages := []stage{{"layer", coarse.partition(), nil, 1}}
	stages[0].chain = stages[0].part
	for at := unit.Chain; ; at-- {
		p := h.Levels[at]
		if at > unit.Op {
			j := newJoiner(g, p, seconds)
			j.within = stages[len(stages)-1].part
			j.absorb(1e-4)
			p = j.partition()
		}
		if last := stages[len(stages)-1].part; p.NumUnits() > last.NumUnits() {
			stages = append(stages, stage{at.String(), p, stages[0].part, 1})
		}
		if at == l {
			break
		}
	}
	return stages
}

// joiner merges units of a partition.
type joiner struct {
	graph   *graph.Graph
	base    *unit.Partition
	parent  []int32 // union-find over the units of base
	seconds []float64
	total   float64
	// within, if not nil, forbids merging units of different units of it.
	within *unit.Partition
}

func newJoiner(g *graph.Graph, p *unit.Partition, seconds []float64) *joiner {
	j := &joiner{graph: g, base: p, parent: make([]int32, p.NumUnits()), seconds: make([]float64, p.NumUnits())}
	for u, ops := range p.Ops {
		j.parent[u] = int32(u)
		for _, i := range ops {
			j.seconds[u] += seconds[i]
		}
		j.total += j.seconds[u]
	}
	return j
}

func (j *joiner) find(u int32) int32 {
	for j.parent[u] != u {
		j.parent[u] = j.parent[j.parent[u]]
		u = j.parent[u]
	}
	return u
}

// join merges the units of u and v; the lower one leads.
func (j *joiner) join(u, v int32) {
	u, v = j.find(u), j.find(v)
	if u == v {
		return
	}
	if v < u {
		u, v = v, u
	}
	j.parent[v] = u
	j.seconds[u] += j.seconds[v]
}

// joinPartners merges each chain with its gradients' chain and with the weights
// that only the two read.
func (j *joiner) joinPartners(h *unit.Hierarchy) {
	for u, v := range h.Partners[unit.Chain] {
		if v >= 0 {
			j.join(int32(u), v)
		}
	}
	readers := make([][]int32, len(j.parent))
	for u, ws := range h.Reads[unit.Chain] {
		for _, w := range ws {
			if r := j.find(int32(u)); !slices.Contains(readers[w], r) {
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
			a, b := j.find(j.base.Of[p]), j.find(j.base.Of[q])
			if a == b || j.within != nil && j.within.Of[p] != j.within.Of[q] {
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
			if j.seconds[j.find(a)] < share*j.total {
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
	number := make([]int32, len(j.parent))
	for u := range number {
		number[u] = -1
	}
	p := &unit.Partition{Of: make([]int32, len(j.base.Of))}
	for i, u := range j.base.Of {
		r := j.find(u)
		if number[r] < 0 {
			number[r] = int32(len(p.Ops))
			p.Ops = append(p.Ops, nil)
		}
		p.Of[i] = number[r]
		p.Ops[number[r]] = append(p.Ops[number[r]], graph.OpID(i))
	}
	return p
}
