package rules

import (
	"slices"

	"placer/graph"
)

// mostLayer bounds the layer numbers that stay as a graph gives them, unless it has more
// ops: arrays are sized by them.
const mostLayer = 1 << 16

// Layers returns the layer that g's annotations give every op, [N], 0 for none. Where a
// number is above both mostLayer and N, which leaves gaps between them at any rate, layers
// are numbered from 1 without gaps, in the same order. Others keep their gaps: a layer that
// is not there counts as one of no time.
func Layers(g *graph.Graph) []int32 {
	layer := make([]int32, g.NumOps())
	for i := range layer {
		layer[i] = g.Op(graph.OpID(i)).Layer
	}
	if len(layer) == 0 || int(slices.Max(layer)) <= max(mostLayer, len(layer)) {
		return layer
	}
	numbers := append(slices.Clone(layer), 0) // so that 0 stays 0
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for i, l := range layer {
		at, _ := slices.BinarySearch(numbers, l)
		layer[i] = int32(at)
	}
	return layer
}
