package unit

import (
	"slices"

	"placer/graph"
)

// anchor reports whether op i starts a cell: products, convolutions and pools
// carry the work and the structure.
func (f *finder) anchor(i graph.OpID) bool {
	switch f.class[i] {
	case graph.ClassGEMM, graph.ClassConv, graph.ClassPool:
		return true
	}
	return f.seconds[i] >= f.heavy
}

// cut assigns the ops of w to cells, [n], dense from 0. Along every edge the
// number of the cell does not fall, except from ops without operands in w, which
// join their first consumer: the cells form no cycle.
func (f *finder) cut(w *flow) (cell []int32, number int32) {
	n := int32(len(w.ops))
	anchor := make([]bool, n)
	for k, i := range w.ops {
		anchor[k] = f.anchor(i)
	}
	moves := make([]bool, n)
	for k, i := range w.ops {
		moves[k] = f.class[i] == graph.ClassMove || f.class[i] == graph.ClassMeta
	}
	c := &cutter{w: w, anchor: anchor, leads: leads(w, anchor, nil), prepares: leads(w, anchor, moves), cell: make([]int32, n), wait: make([]int32, n), waitPreds: map[int32][]int32{}}
	for k := range n {
		c.cell[k], c.wait[k] = -1, -1
	}
	for k := range n {
		c.visit(k)
	}
	c.rest()
	return f.absorb(c)
}

// lightShare is the share of the mean time of a cell with a product below which
// a cell without one is no unit of its own.
const lightShare = 1.0 / 16

// absorb merges light cells without an anchor into the last cell they read, and
// renumbers. Numbers still do not fall along edges.
func (f *finder) absorb(c *cutter) (cell []int32, number int32) {
	n := len(c.preds)
	seconds, anchored := make([]float64, n), make([]bool, n)
	sum, count := 0.0, 0.0
	for k, x := range c.cell {
		seconds[x] += f.seconds[c.w.ops[k]]
		anchored[x] = anchored[x] || c.anchor[k]
	}
	for x, s := range seconds {
		if anchored[x] {
			sum += s
			count++
		}
	}
	to := make([]int32, n)
	for x := range to {
		if ps := c.preds[x]; !anchored[x] && len(ps) > 0 && count > 0 && seconds[x] < lightShare*sum/count {
			if p := slices.Max(ps); p < int32(x) {
				to[x] = to[p]
				continue
			}
		}
		to[x] = number
		number++
	}
	for k, x := range c.cell {
		c.cell[k] = to[x]
	}
	return c.cell, number
}

// leads returns, for each op, the anchor that alone its result goes to, through
// ops that are no anchors, have one consumer each and read nothing that comes
// after the op; or -1. So a running sum over layers does not wait for the anchor
// behind the last of them. Only the ops of through lead anywhere; nil means all.
func leads(w *flow, anchor, through []bool) []int32 {
	l := make([]int32, len(w.ops))
	for k := int32(len(w.ops)) - 1; k >= 0; k-- {
		l[k] = -1
		s := w.succ.of(k)
		if len(s) != 1 || through != nil && !through[k] {
			continue
		}
		if anchor[s[0]] {
			l[k] = s[0]
		} else if slices.Max(w.pred.of(s[0])) <= k {
			l[k] = l[s[0]]
		}
	}
	return l
}

type cutter struct {
	w      *flow
	anchor []bool
	leads  []int32
	// prepares is like leads through ops that only move data: pads, transposes.
	prepares []int32
	cell     []int32 // of each op, -1 while unknown
	wait     []int32 // the anchor, yet to come, to whose cell the op will belong
	// preds lists the cells that each cell reads directly.
	preds [][]int32
	// waitPreds lists the cells that the ops waiting for an anchor read.
	waitPreds map[int32][]int32
	scratch   []int32
}

func (c *cutter) visit(k int32) {
	from := c.scratch[:0] // distinct cells of the operands
	waits := int32(-1)
	for _, p := range c.w.pred.of(k) {
		if a := c.wait[p]; a >= 0 {
			waits = a
		} else if x := c.cell[p]; x >= 0 && !slices.Contains(from, x) {
			from = append(from, x)
		}
	}
	c.scratch = from
	switch {
	case c.anchor[k]:
		c.open(k, append(from, c.waitPreds[k]...))
		delete(c.waitPreds, k)
	case waits >= 0:
		// The operand that waits has op k as its only consumer, so both lead to the
		// same anchor.
		c.waitFor(k, waits, from)
	case len(from) == 0: // joins its consumers
	case c.prepares[k] >= 0:
		c.waitFor(k, c.prepares[k], from)
	default:
		last := slices.Max(from)
		if c.follow(last, from) {
			c.join(k, last, from)
		} else if c.leads[k] >= 0 {
			c.waitFor(k, c.leads[k], from)
		} else {
			c.open(k, from)
		}
	}
}

func (c *cutter) open(k int32, from []int32) {
	c.cell[k] = int32(len(c.preds))
	c.preds = append(c.preds, nil)
	c.join(k, c.cell[k], from)
}

func (c *cutter) join(k, cell int32, from []int32) {
	c.cell[k] = cell
	for _, x := range from {
		if x != cell && !slices.Contains(c.preds[cell], x) {
			c.preds[cell] = append(c.preds[cell], x)
		}
	}
}

func (c *cutter) waitFor(k, a int32, from []int32) {
	c.wait[k] = a
	c.waitPreds[a] = append(c.waitPreds[a], from...)
}

// follow reports whether cell last reads every other cell of from.
func (c *cutter) follow(last int32, from []int32) bool {
	for _, x := range from {
		if x != last && !slices.Contains(c.preds[last], x) {
			return false
		}
	}
	return true
}

// rest assigns what waits and what has no operands.
func (c *cutter) rest() {
	for k := int32(len(c.cell)) - 1; k >= 0; k-- {
		if c.cell[k] >= 0 {
			continue
		}
		if a := c.wait[k]; a >= 0 {
			c.cell[k] = c.cell[a]
			continue
		}
		for _, s := range c.w.succ.of(k) {
			if x := c.cell[s]; x >= 0 && (c.cell[k] < 0 || x < c.cell[k]) {
				c.cell[k] = x
			}
		}
	}
	for k := range c.cell { // sources that lead to no cell
		if c.cell[k] >= 0 {
			continue
		}
		for _, p := range c.w.pred.of(int32(k)) {
			c.cell[k] = max(c.cell[k], c.cell[p])
		}
		if c.cell[k] < 0 {
			c.open(int32(k), nil)
		}
	}
}

// mirror assigns the ops of the backward flow w to the counterparts of forward
// cells: forward[i] is the cell of op i or -1. The result numbers counterparts like
// the forward cells, and what has none from there on; known is false when no op
// names its forward op.
func (f *finder) mirror(w *flow, forward []int32, cells int32) (cell []int32, number int32, known bool) {
	n := int32(len(w.ops))
	cell, number = make([]int32, n), cells
	for k, i := range w.ops {
		cell[k] = -1
		if o := f.g.Op(i).Forward; o >= 0 && f.g.Op(i).Phase == graph.Backward {
			cell[k] = forward[o]
			known = known || cell[k] >= 0
		}
	}
	if !known {
		return nil, 0, false
	}
	for k := n - 1; k >= 0; k-- { // sums of gradients go to the cell they are for
		for _, s := range w.succ.of(k) {
			if cell[k] >= 0 {
				break
			}
			cell[k] = cell[s]
		}
	}
	for k := range n {
		for _, p := range w.pred.of(k) {
			if cell[k] < 0 {
				cell[k] = cell[p]
			}
		}
		if cell[k] < 0 {
			cell[k] = number
			number++
		}
	}
	return cell, number, true
}
