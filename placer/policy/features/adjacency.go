package features

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// Neighbours are the units that exchange tensors with each unit, in either
// direction: those of unit u are Index[At[u]:At[u+1]].
type Neighbours struct {
	At    []int32 // [U+1]
	Index []int32
}

// Adjacency returns, for each unit of p, at most most of the units it exchanges
// tensors or control with, those with the most bytes first (GDP keeps 5). Ties
// go to the lower unit.
func Adjacency(g *graph.Graph, p *unit.Partition, most int) *Neighbours {
	type edge struct {
		a, b  int32
		bytes int64
	}
	var edges []edge
	link := func(a, b int32, bytes int64) {
		if a != b {
			edges = append(edges, edge{a, b, bytes}, edge{b, a, bytes})
		}
	}
	for i := range g.NumOps() {
		u := p.Of[i]
		for _, t := range g.Inputs(graph.OpID(i)) {
			x := g.Tensor(t)
			link(p.Of[x.Producer], u, int64(x.Bytes)+1)
		}
		for _, c := range g.Control(graph.OpID(i)) {
			link(p.Of[c], u, 1)
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
	n := &Neighbours{At: make([]int32, 1, p.NumUnits()+1)}
	for lo, u := 0, int32(0); int(u) < p.NumUnits(); u++ {
		hi := lo
		for hi < len(merged) && merged[hi].a == u {
			hi++
		}
		slices.SortStableFunc(merged[lo:hi], func(x, y edge) int {
			switch {
			case x.bytes > y.bytes:
				return -1
			case x.bytes < y.bytes:
				return 1
			}
			return 0
		})
		for _, e := range merged[lo:min(hi, lo+most)] {
			n.Index = append(n.Index, e.b)
		}
		n.At = append(n.At, int32(len(n.Index)))
		lo = hi
	}
	return n
}
