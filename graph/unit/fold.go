package unit

import (
	"cmp"
	"slices"

	"placer/graph"
)

// Folding divides a graph into blocks, and every block into its repetitions. A block is
// what one device runs of a chain: the cells that share variables in all micro-batches or
// time steps, with their gradients and the variables. A repetition is a block's part in
// one of them. To decide on blocks folds a step of thousands of repetitions to a few
// hundred decisions; the repetitions of a block run one after another all the same, and
// may so overlap with those of other blocks.
type Folding struct {
	// Parts are the repetitions of blocks.
	Parts *Partition
	// Block is the block of each part, 0..Blocks-1 in the order of the forward pass.
	Block  []int32
	Blocks int
	// Turn is the repetition of each part, ascending; -1 where it is in none.
	Turn []int32
}

// Fold returns the folding of g into blocks that stand for about share of the step's time
// each, of at most most repetitions; where a graph repeats itself more often, neighbours
// are one. seconds, [N], are those of Find.
func Fold(g *graph.Graph, seconds []float64, share float64, most int) (*Folding, error) {
	h, err := findAt(g, seconds, share)
	if err != nil {
		return nil, err
	}
	f := &Folding{}
	chains := h.Levels[Chain]
	block := make([]int32, chains.NumUnits())
	for _, u := range h.inOrder(g) {
		block[u] = int32(f.Blocks)
		f.Blocks++
	}
	lead := h.Leads(Chain)
	for u := range block {
		block[u] = block[root(lead, int32(u))]
	}
	turn, turns := h.turns(g)
	scale := int32(1)
	if turns > int32(most) {
		scale = (turns + int32(most) - 1) / int32(most)
	}
	label := make([]int32, len(chains.Of))
	width := turns/scale + 2
	for i, u := range chains.Of {
		if turn[i] >= 0 {
			turn[i] /= scale
		}
		label[i] = block[u]*width + 1 + turn[i]
	}
	f.Parts = partition(label)
	f.Block, f.Turn = make([]int32, f.Parts.NumUnits()), make([]int32, f.Parts.NumUnits())
	for u, ops := range f.Parts.Ops {
		f.Block[u], f.Turn[u] = block[chains.Of[ops[0]]], turn[ops[0]]
	}
	return f, nil
}

// inOrder returns the chains that lead themselves in the order of what they compute: by
// their first ops of the forward pass that read something. Constants and variables may
// stand anywhere.
func (h *Hierarchy) inOrder(g *graph.Graph) (order []int32) {
	chains := h.Levels[Chain]
	first := make([]graph.OpID, chains.NumUnits())
	for u, lead := range h.Leads(Chain) {
		if lead == int32(u) {
			order = append(order, lead)
		}
		for _, i := range chains.Ops[u] {
			first[u] = i
			if h.Roles[Cell][h.Levels[Cell].Of[i]] == Forward && len(g.Inputs(i)) > 0 {
				break
			}
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(first[a], first[b]) })
	return order
}

// root follows lead from u to a unit that leads itself.
func root(lead []int32, u int32) int32 {
	for range len(lead) {
		if lead[u] == u {
			break
		}
		u = lead[u]
	}
	return lead[u]
}

// turns returns the micro-batch or time step of every op, [N], and how many there are:
// that of its cell (ByTimeStep), or else the last that it reads from; -1 where that is none.
func (h *Hierarchy) turns(g *graph.Graph) (turn []int32, n int32) {
	turn = make([]int32, g.NumOps())
	steps := newTimeSteps(h)
	if steps.number(); steps.n < 2 {
		return turn, 1
	}
	steps.spread(g)
	for i := range turn {
		id := graph.OpID(i)
		if turn[i] = steps.of[steps.cells.Of[i]]; turn[i] != none {
			continue
		}
		for q := range g.Predecessors(id) {
			turn[i] = max(turn[i], turn[q])
		}
	}
	return turn, steps.n
}

// Units returns the units of decision of the graph c, which was coarsened to the parts of
// f: its blocks at every level, of which runLength after one another are a chain. They
// know no roles: what a block computes backwards moves with it.
func (f *Folding) Units(c *Coarsened) *Hierarchy {
	block, run := make([]int32, c.Graph.NumOps()), make([]int32, c.Graph.NumOps())
	for v := range block {
		block[v] = f.Block[c.Unit(graph.OpID(v))]
		run[v] = block[v] / runLength
	}
	h := &Hierarchy{}
	for l := range NumLevels {
		label := block
		if l == Chain {
			label = run
		}
		h.Levels[l] = partition(label)
		if l == Op {
			continue
		}
		n := h.Levels[l].NumUnits()
		h.Roles[l], h.Counterparts[l], h.Reads[l] = make([]Role, n), make([]int32, n), make([][]int32, n)
		for u := range n {
			h.Counterparts[l][u] = none
		}
	}
	return h
}
