package unit

import (
	"cmp"
	"fmt"
	"slices"
)

// Blocks cuts the chains of the forward pass, in the order of their first ops,
// into d contiguous blocks of even time and returns the block of every op, [N],
// given op times, [N]. The gradients of a chain go with it, and so do the weights
// that it is the first to read. Chains that are time steps (ByTimeStep) have even
// shares of the blocks; of more blocks than time steps each is a part of one.
func (h *Hierarchy) Blocks(seconds []float64, d int) []uint8 {
	l := Chain
	if h.timeStep != nil {
		l = Segment
	}
	p := h.Levels[l]
	if len(seconds) != len(p.Of) || d < 1 {
		panic(fmt.Sprintf("unit: %d times and %d blocks for %d ops", len(seconds), d, len(p.Of)))
	}
	lead := h.Leads(l)
	load := make([]float64, p.NumUnits())
	for i, u := range p.Of {
		load[lead[u]] += seconds[i]
	}
	var block []uint8
	if h.timeStep != nil {
		block = h.timeBlocks(lead, load, d)
	} else {
		block = evenBlocks(lead, load, d)
	}
	out := make([]uint8, len(p.Of))
	for i, u := range p.Of {
		out[i] = block[lead[u]]
	}
	return out
}

// Leads returns for each unit of level l the one that decides for it: for gradients
// the unit whose gradients they are, for weights the first to read them, else itself.
func (h *Hierarchy) Leads(l Level) []int32 {
	lead := make([]int32, h.Levels[l].NumUnits())
	for u := range lead {
		lead[u] = int32(u)
	}
	if roles := h.Roles[l]; roles != nil {
		for u := len(lead) - 1; u >= 0; u-- { // the first in order has the last word
			if roles[u] != Forward {
				continue
			}
			if q := h.Counterparts[l][u]; q >= 0 {
				lead[q] = int32(u)
			}
			for _, v := range h.Reads[l][u] {
				lead[v] = int32(u)
			}
		}
	}
	return lead
}

// evenBlocks cuts the units that lead, each with its load, in order.
func evenBlocks(lead []int32, load []float64, d int) []uint8 {
	block, total := make([]uint8, len(lead)), 0.0
	for _, x := range load {
		total += x
	}
	before := 0.0
	for u := range block {
		if lead[u] == int32(u) && total > 0 {
			block[u] = uint8(min(d-1, int(float64(d)*(before+load[u]/2)/total)))
			before += load[u]
		}
	}
	return block
}

// timeBlocks gives each time step its blocks and cuts its segments among these, in
// the order of their last ops.
func (h *Hierarchy) timeBlocks(lead []int32, load []float64, d int) []uint8 {
	p, up := h.Levels[Segment], h.Parents(Segment, Chain)
	total, before := make([]float64, len(h.timeStep)), make([]float64, len(h.timeStep))
	number, n := make([]int, len(h.timeStep)), 0 // of a time step
	for c, is := range h.timeStep {
		if is {
			number[c] = n
			n++
		}
	}
	order := make([]int32, 0, len(lead))
	for u := range int32(len(lead)) {
		if lead[u] == u && h.timeStep[up[u]] {
			order = append(order, u)
			total[up[u]] += load[u]
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(p.last(a), p.last(b)) })
	block := make([]uint8, len(lead))
	for _, u := range order {
		c := up[u]
		first := number[c] * d / n
		parts := max(1, (number[c]+1)*d/n-first)
		part := 0
		if total[c] > 0 {
			part = min(parts-1, int(float64(parts)*(before[c]+load[u]/2)/total[c]))
		}
		block[u] = uint8(first + part)
		before[c] += load[u]
	}
	return block
}
