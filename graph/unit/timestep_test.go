package unit

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
)

// A chain has the cells of one time step through all layers, its counterpart their
// gradients; what holds variables is as it was.
func TestByTimeStep(t *testing.T) {
	const layers, steps = 3, 5
	g, weights, products := recurrent(layers, steps, true)
	for _, before := range []*Hierarchy{find(t, g), find(t, g).WithPartialGradients(g, ones(g))} {
		h := before.ByTimeStep(g)
		if err := h.Check(g); err != nil {
			t.Fatal(err)
		}
		if h.Levels[Cell] != before.Levels[Cell] || h.WithoutPartialGradients() != before.WithoutPartialGradients() && before.whole != nil {
			t.Error("cells are not as they were")
		}
		chain := h.Levels[Chain].Of
		for k := range steps {
			for l := range layers {
				if a, b := chain[products[0][k]], chain[products[l][k]]; a != b {
					t.Errorf("time step %d: layer %d is in chain %d, the first in %d", k, l, b, a)
				}
			}
			if k > 0 && chain[products[0][k-1]] >= chain[products[0][k]] {
				t.Errorf("time steps %d and %d are chains %d and %d", k-1, k, chain[products[0][k-1]], chain[products[0][k]])
			}
		}
		for i := range g.NumOps() {
			o, u := g.Op(graph.OpID(i)), chain[i]
			if f := o.Forward; o.Phase == graph.Backward && h.Roles[Chain][u] == Backward && h.Counterparts[Chain][u] >= 0 && chain[f] != h.Counterparts[Chain][u] && h.Roles[Cell][h.Levels[Cell].Of[f]] == Forward {
				t.Errorf("op %d (%s): chain %d, counterpart of %d, and not of that of op %d, %d", i, o.Name, u, h.Counterparts[Chain][u], f, chain[f])
			}
		}
		for l, w := range weights {
			if h.Roles[Chain][chain[w]] != Weights || slices.ContainsFunc(products[l], func(i graph.OpID) bool { return chain[i] == chain[w] }) {
				t.Errorf("the variable of layer %d is in chain %d", l, chain[w])
			}
		}
	}
}

// Where nothing is used twice there are no time steps.
func TestNoTimeSteps(t *testing.T) {
	g, _, _ := recurrent(4, 1, true)
	if h := find(t, g).ByTimeStep(g); h != nil {
		t.Errorf("units by time step: %v", h.Levels[Chain].Ops)
	}
}

// Few blocks have whole time steps, many have parts of one: no block has a forward
// cell of two time steps where there are as many blocks.
func TestTimeStepBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers, steps := rapid.IntRange(1, 30).Draw(t, "layers"), rapid.IntRange(2, 6).Draw(t, "steps")
		d := rapid.IntRange(1, 16).Draw(t, "d")
		g, _, products := recurrent(layers, steps, true)
		h, err := Find(g, ones(g))
		if err != nil {
			t.Fatal(err)
		}
		h = h.ByTimeStep(g)
		block := h.Blocks(ones(g), d)
		most := uint8(0)
		of := make([][]uint8, steps)
		for _, ps := range products {
			for k, i := range ps {
				of[k] = append(of[k], block[i])
				most = max(most, block[i])
			}
		}
		if int(most) >= d {
			t.Fatalf("block %d of %d", most, d)
		}
		for k := range of {
			if !slices.IsSorted(of[k]) {
				t.Errorf("time step %d goes through blocks %v", k, of[k])
			}
			if d <= steps && of[k][0] != of[k][layers-1] {
				t.Errorf("time step %d of %d is in blocks %v of %d", k, steps, of[k], d)
			}
			if k > 0 && d >= steps && of[k-1][layers-1] >= of[k][0] {
				t.Errorf("time steps %d and %d share a block of %d: %v, %v", k-1, k, d, of[k-1], of[k])
			}
		}
	})
}
