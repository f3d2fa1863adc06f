package curriculum

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/placer/policy/features"
)

// positions are the cells of a graph by their place along its forward pass: a forward
// cell's is the longest path to its heaviest op, gradients have their forward cell's,
// weights that of their first reader.
type positions struct {
	hierarchy *unit.Hierarchy
	seconds   []float64 // [N]
	place     []float64 // [cells] in seconds
}

func newPositions(g *graph.Graph, h *unit.Hierarchy, seconds []float64) *positions {
	return &positions{h, seconds, forwardPositions(g, h, seconds)}
}

// blocks cuts the cells into about n blocks of equal time.
func (p *positions) blocks(n int) *unit.Partition {
	cells := p.hierarchy.Levels[unit.Cell]
	block := equalBlocks(cells, p.place, p.seconds, n)
	label := make([]int, len(cells.Of))
	for i, u := range cells.Of {
		label[i] = block[u]
	}
	return number(label, n)
}

// stretches cuts the cells into about n blocks of equal time, in each of which forward
// cells, gradients and weights are units of their own.
func (p *positions) stretches(n int) *unit.Partition {
	const kinds = 3
	cells, roles := p.hierarchy.Levels[unit.Cell], p.hierarchy.Roles[unit.Cell]
	block := equalBlocks(cells, p.place, p.seconds, n)
	label := make([]int, len(cells.Of))
	for i, u := range cells.Of {
		label[i] = block[u]*kinds + int(roles[u])%kinds
	}
	return number(label, n*kinds)
}

// forwardPositions returns the place of each cell of h along the forward pass, in seconds:
// that of what nothing places is the last one.
func forwardPositions(g *graph.Graph, h *unit.Hierarchy, seconds []float64) []float64 {
	cells, counterparts, roles := h.Levels[unit.Cell], h.Counterparts[unit.Cell], h.Roles[unit.Cell]
	place := make([]float64, cells.NumUnits())
	known := make([]bool, cells.NumUnits())
	top := features.TopLevels(g, seconds)
	for u, ops := range cells.Ops {
		if roles[u] == unit.Forward {
			heaviest := ops[0]
			for _, i := range ops {
				if seconds[i] > seconds[heaviest] {
					heaviest = i
				}
			}
			place[u], known[u] = top[heaviest], true
		}
	}
	for u, v := range counterparts {
		if roles[u] == unit.Backward && v >= 0 {
			place[u], known[u] = place[v], known[v]
		}
	}
	for u, ws := range h.Reads[unit.Cell] {
		for _, w := range ws {
			if known[u] && (!known[w] || place[u] < place[w]) {
				place[w], known[w] = place[u], true
			}
		}
	}
	last := 0.0
	for u := range place {
		if known[u] {
			last = max(last, place[u])
		}
	}
	for u := range place {
		if !known[u] {
			place[u] = last
		}
	}
	return place
}

// equalBlocks cuts cells, in the order of their places, into about n blocks of equal time,
// and returns the block of each. Cells at one place, a forward cell with its gradients and
// weights, stay together.
func equalBlocks(cells *unit.Partition, place, seconds []float64, n int) []int {
	total, time := 0.0, make([]float64, len(place))
	for u, ops := range cells.Ops {
		for _, i := range ops {
			time[u] += seconds[i]
		}
		total += time[u]
	}
	if total == 0 { // a graph of no time is one block
		total = 1
	}
	order := make([]int, len(place))
	for u := range order {
		order[u] = u
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	block := make([]int, len(place))
	sum := 0.0
	for k, u := range order {
		if k > 0 && place[u] == place[order[k-1]] {
			block[u] = block[order[k-1]]
		} else {
			block[u] = min(n-1, int((sum+time[u]/2)/total*float64(n)))
		}
		sum += time[u]
	}
	return block
}
