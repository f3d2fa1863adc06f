package strategy

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
)

// chains takes the strongly connected components of the model's chains, or of units of another level (package
// graph/unit), in topological order: a recurrent network's layers, unrolled in time, whose
// annotated layers lead forth and back. It reports whether there are several.
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
	component, count := components(next)
	// Tarjan numbers components in reverse topological order.
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
	slices.SortFunc(list, func(x, y int32) int { return cmp.Compare(y, x) })
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

// components returns the strongly connected component of each node and their number
// (Tarjan 1972, without recursion).
func components(next [][]int32) (of []int32, count int32) {
	n := len(next)
	of = make([]int32, n)
	entered, low := make([]int32, n), make([]int32, n)
	for i := range of {
		of[i] = -1
	}
	type frame struct {
		v int32
		k int
	}
	var calls []frame
	var stack []int32
	clock := int32(0)
	for start := range int32(n) {
		if entered[start] > 0 {
			continue
		}
		calls = append(calls, frame{start, 0})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.k == 0 {
				clock++
				entered[v], low[v] = clock, clock
				stack = append(stack, v)
			}
			if f.k < len(next[v]) {
				w := next[v][f.k]
				f.k++
				if entered[w] == 0 {
					calls = append(calls, frame{w, 0})
				} else if of[w] < 0 {
					low[v] = min(low[v], entered[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1].v
				low[u] = min(low[u], low[v])
			}
			if low[v] == entered[v] {
				for {
					w := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					of[w] = count
					if w == v {
						break
					}
				}
				count++
			}
		}
	}
	return of, count
}
