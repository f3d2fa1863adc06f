package features

import (
	"math"

	"placer/graph"
)

// TopLevels returns, per op, the longest path before it, without transfers, [N].
func TopLevels(g *graph.Graph, seconds []float64) []float64 {
	top, _ := levels(g, seconds)
	return top
}

// levels returns, per op, the longest path before it and the longest path from
// its start to the end, without transfers, [N] each.
func levels(g *graph.Graph, seconds []float64) (top, bottom []float64) {
	n := g.NumOps()
	top, bottom = make([]float64, n), make([]float64, n)
	for i := range n {
		for q := range g.Predecessors(graph.OpID(i)) {
			top[i] = math.Max(top[i], top[q]+seconds[q])
		}
	}
	for i := n - 1; i >= 0; i-- {
		bottom[i] += seconds[i]
		for q := range g.Predecessors(graph.OpID(i)) {
			bottom[q] = math.Max(bottom[q], bottom[i])
		}
	}
	return top, bottom
}
