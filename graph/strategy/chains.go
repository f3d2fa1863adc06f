package strategy

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/internal/digraph"
)

// chains takes the strongly connected components of the model's chains, or of units of
// another level (package graph/unit), in topological order: a recurrent network's layers,
// unrolled in time, whose annotated layers lead forth and back. It reports whether there are
// several.
func (b *Blocks) chains(seconds []float64, level unit.Level) bool {
	g, m := b.m.Micro, b.m
	h, err := unit.Find(g, seconds)
	if err != nil {
		return false
	}
	p := h.Levels[level]
	n := p.NumUnits()
	next := make([][]int32, n)
	in := func(i graph.OpID) bool { return g.Op(i).Phase == graph.Forward && !m.once[i] }
	used := make([]bool, n)
	for i := range graph.OpID(g.NumOps()) {
		if !in(i) {
			continue
		}
		used[p.Of[i]] = true
		for q := range g.Predecessors(i) {
			if a, c := p.Of[q], p.Of[i]; in(q) && a != c && !slices.Contains(next[a], c) {
				next[a] = append(next[a], c)
			}
		}
	}
	component, count := digraph.Components(next)
	var list []int32
	seen := make([]bool, count)
	for u := range n {
		if c := component[u]; used[u] && !seen[c] {
			seen[c] = true
			list = append(list, c)
		}
	}
	if len(list) < 2 {
		return false
	}
	slices.SortFunc(list, func(x, y int32) int { return cmp.Compare(y, x) }) // topological order
	position := make([]int32, count)
	for k, c := range list {
		position[c] = int32(k)
	}
	b.n = len(list)
	for i := range graph.OpID(g.NumOps()) {
		if in(i) {
			b.of[i] = position[component[p.Of[i]]]
		}
	}
	return true
}

// mostFine bounds fine blocks: cuts are found in time quadratic in their number.
const mostFine = 768

// NewFineBlocks returns the cells of m as blocks (a product with what follows it), in
// topological order, so that stages can be cut within layers. Neighbours are joined where
// there are too many.
func NewFineBlocks(m *Model, seconds []float64) *Blocks {
	b := &Blocks{of: make([]int32, m.Micro.NumOps()), m: m}
	if !b.chains(seconds, unit.Cell) {
		return NewBlocks(m, seconds)
	}
	if b.n > mostFine {
		for i := range b.of {
			b.of[i] = int32(int64(b.of[i]) * mostFine / int64(b.n))
		}
		b.n = mostFine
	}
	b.settle()
	return b
}
