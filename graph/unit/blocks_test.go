package unit

import (
	"testing"

	"placer/graph"
)

func TestBlocks(t *testing.T) {
	const layers = 4
	g, weights, products := recurrent(layers, 30, true)
	h := find(t, g)
	seconds := ones(g)
	for d := 1; d <= layers; d++ {
		block := h.Blocks(seconds, d)
		load, total := make([]float64, d), 0.0
		for i, b := range block {
			load[b] += seconds[i]
			total += seconds[i]
		}
		for b, x := range load {
			// A layer is a quarter of the work, and blocks are off by half of one at most
			// at each end.
			if x > total/float64(d)+total/layers*1.1 {
				t.Errorf("%d blocks: block %d has %.0f%% of the work", d, b, 100*x/total)
			}
		}
		for l, ps := range products {
			if l > 0 && block[ps[0]] < block[products[l-1][0]] {
				t.Errorf("%d blocks: layer %d is in block %d, the one before in %d", d, l, block[ps[0]], block[products[l-1][0]])
			}
			if block[weights[l]] != block[ps[0]] {
				t.Errorf("%d blocks: layer %d is in block %d, its weights in %d", d, l, block[ps[0]], block[weights[l]])
			}
			for i := range g.NumOps() {
				if g.Op(graph.OpID(i)).Forward == ps[3] && block[i] != block[ps[3]] {
					t.Errorf("%d blocks: op %d is in block %d, its forward op in %d", d, i, block[i], block[ps[3]])
				}
			}
		}
	}
}
