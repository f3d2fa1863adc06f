package anneal

import (
	"testing"

	"placer/graph/unit"
)

// Ops that are alike are of one chain, kind and phase, no two of one cell, and the same op of
// the four time steps is in one group.
func TestAlike(t *testing.T) {
	p := unrolled(t)
	of, n := alike(p)
	ops, cells, chains := p.Units.Levels[unit.Op], p.Units.Levels[unit.Cell], p.Units.Levels[unit.Chain]
	members := make([][]int, n)
	for u, g := range of {
		members[g] = append(members[g], u)
	}
	steps := 0
	for g, us := range members {
		if len(us) == 0 {
			t.Fatalf("group %d is empty", g)
		}
		first, in := ops.Ops[us[0]][0], map[int32]bool{}
		for _, u := range us {
			i := ops.Ops[u][0]
			if a, b := p.Graph.Op(i), p.Graph.Op(first); a.Kind != b.Kind || a.Phase != b.Phase || chains.Of[i] != chains.Of[first] {
				t.Errorf("%s is in a group with %s", a.Name, b.Name)
			}
			if in[cells.Of[i]] {
				t.Errorf("group %d has two ops of cell %d", g, cells.Of[i])
			}
			in[cells.Of[i]] = true
		}
		if len(us) == 4 {
			steps++
		}
	}
	if steps < 20 {
		t.Errorf("%d of %d groups have an op of each of four time steps", steps, n)
	}
}
