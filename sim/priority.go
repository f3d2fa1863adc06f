package sim

import (
	"cmp"
	"fmt"
	"slices"

	"placer/graph"
)

// BottomLevels returns, [N], the length of the longest path from the start of
// each op to the end of the step, in seconds, with no transfers.
func BottomLevels(g *graph.Graph, seconds []float64) []float64 {
	n := g.NumOps()
	if len(seconds) != n {
		panic(fmt.Sprintf("sim: %d times for %d ops", len(seconds), n))
	}
	level := make([]float64, n) // until op i is reached: the longest path behind it
	for i := n - 1; i >= 0; i-- {
		level[i] += seconds[i]
		for p := range g.Predecessors(graph.OpID(i)) {
			level[p] = max(level[p], level[i])
		}
	}
	return level
}

// CriticalPathPriority returns the priority that runs the op with the longest
// path behind it first, [N]: ops by descending bottom level, ties by id, for op
// times seconds, [N].
func CriticalPathPriority(g *graph.Graph, seconds []float64) []int32 {
	level := BottomLevels(g, seconds)
	for i := range level {
		level[i] = -level[i]
	}
	return RankByKey(level)
}

// RankByKey returns the priority, [N], that runs ops by ascending key, ties by
// id.
func RankByKey[K cmp.Ordered](key []K) []int32 {
	rank := make([]int32, len(key))
	for r, i := range byKey(key) {
		rank[i] = int32(r)
	}
	return rank
}

// byKey returns the indices of key by ascending key, ties by index.
func byKey[K cmp.Ordered](key []K) []int32 {
	order := make([]int32, len(key))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(key[a], key[b]), cmp.Compare(a, b)) })
	return order
}
