package unit

import "fmt"

// Blocks cuts the chains of the forward pass, in the order of their first ops,
// into d contiguous blocks of even time and returns the block of every op, [N],
// given op times, [N]. The gradients of a chain go with it, and so do the weights
// that it is the first to read.
func (h *Hierarchy) Blocks(seconds []float64, d int) []uint8 {
	p := h.Levels[Chain]
	if len(seconds) != len(p.Of) || d < 1 {
		panic(fmt.Sprintf("unit: %d times and %d blocks for %d ops", len(seconds), d, len(p.Of)))
	}
	n := p.NumUnits()
	lead := make([]int32, n) // the chain that decides for each
	for u := range lead {
		lead[u] = int32(u)
	}
	if roles := h.Roles[Chain]; roles != nil {
		for u := n - 1; u >= 0; u-- { // the first in order has the last word
			if roles[u] != Forward {
				continue
			}
			if q := h.Partners[Chain][u]; q >= 0 {
				lead[q] = int32(u)
			}
			for _, v := range h.Reads[Chain][u] {
				lead[v] = int32(u)
			}
		}
	}
	load, total := make([]float64, n), 0.0
	for i, u := range p.Of {
		load[lead[u]] += seconds[i]
		total += seconds[i]
	}
	block, before := make([]uint8, n), 0.0
	for u := range block {
		if lead[u] == int32(u) && total > 0 {
			block[u] = uint8(min(d-1, int(float64(d)*(before+load[u]/2)/total)))
			before += load[u]
		}
	}
	out := make([]uint8, len(p.Of))
	for i, u := range p.Of {
		out[i] = block[lead[u]]
	}
	return out
}
