package unit

import (
	"fmt"
	"testing"

	"placer/graph"
)

// apart returns a graph of n products without edges, and a chain of as many layers.
func productsApart(t *testing.T, n, layers int) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("apart")
	word := graph.Tensor{DType: graph.F32, Bytes: 4}
	var in []graph.TensorID
	for k := range layers {
		in = []graph.TensorID{b.Output(b.Op(graph.Op{Name: fmt.Sprintf("layer%d", k), Kind: "MatMul", FLOPs: 8, Forward: graph.None}, in, word), 0)}
	}
	for k := range n {
		b.Op(graph.Op{Name: fmt.Sprintf("product%d", k), Kind: "MatMul", FLOPs: 8, Forward: graph.None}, nil, word)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Ops without edges are cells of their own, up to a number, alone or beside others; a coarser level
// joins those that are light.
func TestOpsApart(t *testing.T) {
	for _, c := range []struct {
		name                     string
		apart, layers            int
		cells, segments, chains  int // of what is apart
		mostSegments, mostChains int
	}{
		{"one", 1, 0, 1, 1, 1, 1, 1},
		{"a few", 14, 0, 14, 14, 14, 14, 14},
		{"some", 60, 0, 60, 60, 20, 60, 20},
		{"beside a chain", 14, 10, 14, 14, 12, 14, 14},
		{"very many", 5000, 0, 1000, 75, 18, mostApart, 25},
	} {
		g := productsApart(t, c.apart, c.layers)
		h := find(t, g)
		seen := [NumLevels]map[int32]bool{}
		for lv := range h.Levels {
			seen[lv] = map[int32]bool{}
			for i := range g.NumOps() {
				if g.Op(graph.OpID(i)).Name[0] == 'p' {
					seen[lv][h.Levels[lv].Of[i]] = true
				} else if u := h.Levels[lv].Of[i]; seen[lv][u] {
					t.Errorf("%s: op %d of the chain is in a unit of what is apart", c.name, i)
				}
			}
		}
		for u := range seen[Cell] {
			if h.Roles[Cell][u] != Forward || h.Counterparts[Cell][u] >= 0 {
				t.Errorf("%s: cell %d has role %v and counterpart %d", c.name, u, h.Roles[Cell][u], h.Counterparts[Cell][u])
			}
		}
		cells, segments, chains := len(seen[Cell]), len(seen[Segment]), len(seen[Chain])
		if cells < c.cells || cells > max(c.cells, min(c.apart, mostApart+c.apart/mostApart)) || c.apart <= mostApart && cells != c.apart {
			t.Errorf("%s: %d cells", c.name, cells)
		}
		if segments < c.segments || segments > c.mostSegments || chains < c.chains || chains > c.mostChains {
			t.Errorf("%s: %d segments, %d chains", c.name, segments, chains)
		}
	}
}
