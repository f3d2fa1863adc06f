package unit

import (
	"cmp"
	"slices"

	"placer/graph"
)

// ByTimeStep returns units of g whose chains run across those of h: where the cells
// of a chain of h use the same variables at one time step after the other, a chain
// here has the cells of one time step through all layers, and its segments are runs
// of these. Cells, and the coarser units of what holds variables or belongs to no
// time step, are those of h. It returns nil where no variable is used twice.
//
// Both ways divide an unrolled network. Layers suit a pipeline; a device had better
// take a time step where time steps depend little on each other, as the segments of
// Transformer-XL do, which read what earlier ones leave behind and give back no
// gradients.
func (h *Hierarchy) ByTimeStep(g *graph.Graph) *Hierarchy {
	f := newTimeSteps(h)
	if f.number(); f.n < 2 {
		return nil
	}
	f.spread(g)
	return f.finish()
}

const none = -1

// timeSteps holds the state of one ByTimeStep.
type timeSteps struct {
	h     *Hierarchy
	cells *Partition
	n     int32
	of    []int32 // [cells] time step, or none
}

func newTimeSteps(h *Hierarchy) *timeSteps {
	f := &timeSteps{h: h, cells: h.Levels[Cell], of: make([]int32, h.Levels[Cell].NumUnits())}
	for c := range f.of {
		f.of[c] = none
	}
	return f
}

// number gives the readers of variables their time steps: a variable that is used
// as often as most readers' variables are is used once at each.
func (f *timeSteps) number() {
	readers := make([][]int32, len(f.of)) // [cells] of one that holds variables
	for c, reads := range f.h.Reads[Cell] {
		if f.h.Roles[Cell][c] == Forward {
			for _, w := range reads {
				readers[w] = append(readers[w], int32(c))
			}
		}
	}
	count := map[int]int{} // readers by uses of their variable
	for _, cs := range readers {
		uses := len(cs)
		if count[uses] += uses; uses > 1 && count[uses] > count[int(f.n)] {
			f.n = int32(uses)
		}
	}
	for _, cs := range readers {
		if len(cs) != int(f.n) {
			continue
		}
		for k, c := range cs {
			if f.of[c] == none {
				f.of[c] = int32(k)
			}
		}
	}
}

// spread gives the other cells of the forward pass the latest time step of what
// they read, and gradients that of what they are gradients of.
func (f *timeSteps) spread(g *graph.Graph) {
	roles, numbered := f.h.Roles[Cell], slices.Clone(f.of)
	for i := range graph.OpID(g.NumOps()) {
		c := f.cells.Of[i]
		if numbered[c] != none || roles[c] != Forward {
			continue
		}
		for _, t := range g.Inputs(i) {
			if p := f.cells.Of[g.Tensor(t).Producer]; roles[p] == Forward {
				f.of[c] = max(f.of[c], f.of[p])
			}
		}
	}
	for c, p := range f.h.Counterparts[Cell] {
		if roles[c] == Backward && p != none {
			f.of[c] = f.of[p]
		}
	}
}

// finish makes the hierarchy. A time step's cells follow each other as their last
// ops do: the first ops of some make states that stand at the graph's beginning.
func (f *timeSteps) finish() *Hierarchy {
	h, roles := f.h, f.h.Roles[Cell]
	chain, segment := make([]int32, len(f.of)), make([]int32, len(f.of))
	forward := make([][]int32, f.n)
	for c, k := range f.of {
		if k != none && roles[c] == Forward {
			forward[k] = append(forward[k], int32(c))
		}
	}
	runs := int32(0)
	for k, cells := range forward {
		slices.SortFunc(cells, func(a, b int32) int { return cmp.Compare(f.cells.last(a), f.cells.last(b)) })
		m := (len(cells) + runLength - 1) / runLength
		for i, c := range cells {
			chain[c], segment[c] = int32(k), runs+int32(i*m/len(cells))
		}
		runs += int32(m)
	}
	inChain, inSegment := h.Parents(Cell, Chain), h.Parents(Cell, Segment)
	for c, k := range f.of {
		switch {
		case k == none || roles[c] == Weights:
			chain[c], segment[c] = 2*f.n+inChain[c], 2*runs+inSegment[c]
		case roles[c] == Backward:
			chain[c], segment[c] = f.n+k, runs+segment[h.Counterparts[Cell][c]]
		}
	}

	out := &Hierarchy{whole: h.whole}
	for _, l := range []Level{Op, Cell} {
		out.Levels[l], out.Roles[l], out.Counterparts[l], out.Reads[l] = h.Levels[l], h.Roles[l], h.Counterparts[l], h.Reads[l]
	}
	out.join(Segment, segment)
	out.join(Chain, chain)
	out.timeStep = make([]bool, out.Levels[Chain].NumUnits())
	for c, u := range out.Parents(Cell, Chain) {
		out.timeStep[u] = chain[c] < f.n
	}
	return out
}

// last returns unit u's last op.
func (p *Partition) last(u int32) graph.OpID { return p.Ops[u][len(p.Ops[u])-1] }

// join makes level l of the labels of cells.
func (h *Hierarchy) join(l Level, label []int32) {
	ops := make([]int32, len(h.Levels[Cell].Of))
	for i, c := range h.Levels[Cell].Of {
		ops[i] = label[c]
	}
	h.Levels[l] = partition(ops)
	h.describe(l)
}
