package sequential

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
)

// TestHugeLayers: a policy reads layers of huge numbers as those of their order.
func TestHugeLayers(t *testing.T) {
	read := func(layers ...int32) *instance {
		b := graph.NewBuilder("chain")
		x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
		at := b.Output(x, 0)
		for k, l := range layers {
			m := graph.GEMM{Batch: 1, M: 64, N: 256, K: 256}
			f := b.Op(graph.Op{Name: fmt.Sprintf("f%d", k), Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs(), Bytes: graph.Auto, Layer: l, Forward: graph.None}, []graph.TensorID{at, at},
				graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
			at = b.Output(f, 0)
		}
		g, err := b.Build()
		must(t, err)
		machine, err := hw.Take("p100", 2, false)
		must(t, err)
		p, err := problem.New(problem.Source{Graph: g}, machine, problem.Options{})
		must(t, err)
		f, err := NewFeatures(&p.Problem)
		must(t, err)
		return f.instance(atCells)
	}
	want, got := read(1, 2, 3, 4), read(7, 1e9, 2e9, math.MaxInt32)
	if !slices.Equal(got.features, want.features) {
		t.Error("units of huge layers have other features than those of the same order")
	}
}
