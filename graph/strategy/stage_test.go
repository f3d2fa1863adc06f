package strategy

import (
	"fmt"
	"testing"

	"placer/graph"
)

// TestStretchesOfNoTime: a chain of eight ops without layers, of which none takes any time, is cut into
// stretches of one op each, as one of equal times is.
func TestStretchesOfNoTime(t *testing.T) {
	b := graph.NewBuilder("chain")
	x := graph.Tensor{DType: graph.F32, Shape: []int64{4}, Bytes: graph.Auto}
	last := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, x), 0)
	for k := range 7 {
		last = b.Output(b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "Relu", Forward: graph.None}, []graph.TensorID{last}, x), 0)
	}
	m := modelOf(t, b)
	g := m.Micro
	for _, seconds := range []float64{0, 2.5} {
		all := make([]float64, g.NumOps())
		for i := range all {
			all[i] = seconds
		}
		blocks := &Blocks{of: make([]int32, g.NumOps()), m: m}
		blocks.stretches(all)
		for i, k := range blocks.of {
			if int(k) != i || blocks.n != 8 {
				t.Errorf("ops of %g s: op %d is in stretch %d of %d, want %d of 8", seconds, i, k, blocks.n, i)
			}
		}
	}
}
