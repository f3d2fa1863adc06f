package unit

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
)

// Each step's product for a variable's gradient becomes a cell, the counterpart of the
// step; the sum over the steps and the update stay with the variable, and all else
// is as it was.
func TestPartialGradients(t *testing.T) {
	const layers, steps = 2, 5
	g, weights, products := recurrent(layers, steps, true)
	before := find(t, g)
	h := before.WithPartialGradients(g, ones(g))
	if err := h.Check(g); err != nil {
		t.Fatal(err)
	}
	if n := h.Levels[Cell].NumUnits() - before.Levels[Cell].NumUnits(); n != layers*steps {
		t.Errorf("%d more cells, want one a layer and step, %d", n, layers*steps)
	}
	if again := h.WithPartialGradients(g, ones(g)); again != h {
		t.Error("what was split is split again")
	}
	if h.WithoutPartialGradients() != before || before.WithoutPartialGradients() != before {
		t.Error("what it was split from is not kept")
	}
	cell, old := h.Levels[Cell].Of, before.Levels[Cell].Of
	seen := map[int32]bool{}
	for i := range g.NumOps() {
		o := g.Op(graph.OpID(i))
		layer := slices.IndexFunc(products, func(ps []graph.OpID) bool { return slices.Contains(ps, o.Forward) })
		if layer >= 0 && o.Kind == "MatMul" && o.Phase == graph.Backward && old[i] == old[weights[layer]] {
			c := cell[i]
			if seen[c] || c == cell[weights[layer]] || h.Roles[Cell][c] != Backward || h.Counterparts[Cell][c] != cell[o.Forward] {
				t.Errorf("op %d (%s): in cell %d (%v) with counterpart %d, want one of its own with counterpart %d", i, o.Name, c, h.Roles[Cell][c], h.Counterparts[Cell][c], cell[o.Forward])
			}
			seen[c] = true
			continue
		}
		if first := before.Levels[Cell].Ops[old[i]][0]; cell[i] != cell[first] {
			t.Errorf("op %d (%s) left its cell", i, o.Name)
		}
		if h.Roles[Cell][cell[i]] != before.Roles[Cell][old[i]] {
			t.Errorf("op %d (%s): its cell is %v, was %v", i, o.Name, h.Roles[Cell][cell[i]], before.Roles[Cell][old[i]])
		}
	}
	if len(seen) != layers*steps {
		t.Errorf("%d partial gradients, want %d", len(seen), layers*steps)
	}
}

func TestPartialGradientsThatStay(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
		light bool
	}{
		{"a use alone", 1, false},
		{"more uses than are split", mostUses + 1, false},
		{"next to no time", 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _, _ := recurrent(2, c.steps, true)
			seconds := ones(g)
			for i := range seconds {
				if o := g.Op(graph.OpID(i)); c.light && o.Phase == graph.Backward && o.Kind == "MatMul" {
					seconds[i] = 1e-9
				}
			}
			h, err := Find(g, seconds)
			if err != nil {
				t.Fatal(err)
			}
			if h.WithPartialGradients(g, seconds) != h {
				t.Error("cells were split")
			}
		})
	}
}

// Whatever the graph, what comes out is a hierarchy whose cells lie within the old
// ones, and variables, updates and groups stay where they were.
func TestPartialGradientsOnRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		seconds := make([]float64, g.NumOps())
		for i := range seconds {
			seconds[i] = float64(rapid.IntRange(0, 9).Draw(t, "seconds"))
		}
		before, err := Find(g, seconds)
		if err != nil {
			t.Fatal(err)
		}
		h := before.WithPartialGradients(g, seconds)
		if err := h.Check(g); err != nil {
			t.Fatal(err)
		}
		if err := before.Check(g); err != nil {
			t.Fatalf("the hierarchy it was made from: %v", err)
		}
		home := map[int32]int32{} // old cell -> new cell of what stays
		for u, ops := range h.Levels[Cell].Ops {
			old := before.Levels[Cell].Of[ops[0]]
			for _, i := range ops {
				if before.Levels[Cell].Of[i] != old {
					t.Fatalf("cell %d holds ops of the old cells %d and %d", u, old, before.Levels[Cell].Of[i])
				}
				o := g.Op(i)
				if c := o.Kind.Class(); o.Group == 0 && c != graph.ClassVariable && c != graph.ClassUpdate {
					continue
				}
				if v, ok := home[old]; ok && v != int32(u) {
					t.Errorf("op %d (%s) left for cell %d, others stayed in %d", i, o.Kind, u, v)
				}
				home[old] = int32(u)
			}
			p := h.Counterparts[Cell][u]
			if p >= 0 && h.Roles[Cell][p] == h.Roles[Cell][u] {
				t.Errorf("cells %d and %d are counterparts and both %v", u, p, h.Roles[Cell][u])
			}
			for _, v := range h.Reads[Cell][u] {
				if h.Roles[Cell][v] != Weights {
					t.Errorf("cell %d reads cell %d, which is %v", u, v, h.Roles[Cell][v])
				}
			}
		}
	})
}
