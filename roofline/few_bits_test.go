package roofline_test

import (
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/roofline"
	"placer/units"
)

// A large product of 4 bits takes half as long as one of 8 on a GPU with units for it, and as long
// as one of 16 on others; of 8 bits the same on GPUs without units for those.
func TestFewBits(t *testing.T) {
	step := func(machine string, of graph.DType) units.Seconds {
		m, err := hw.Take(machine, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.NewBuilder("products")
		x := graph.GEMM{Batch: 1, M: 16384, N: 16384, K: 16384}
		b.Op(graph.Op{Name: "product", Kind: "MatMul", DType: of, GEMM: x, FLOPs: x.FLOPs(), Bytes: 3 << 28}, nil, graph.Tensor{Shape: graph.Shape{16384, 16384}, DType: graph.BF16, Bytes: graph.Auto})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := roofline.New(g, m, roofline.Default())
		if err != nil {
			t.Fatal(err)
		}
		return r.OpSeconds(0, 0)
	}
	for _, c := range []struct {
		machine  string
		few, of  graph.DType
		at, most float64 // times as long
	}{
		{"b200", graph.F4, graph.F8, 0.5, 0.55}, {"b200", graph.F8, graph.BF16, 0.48, 0.55},
		{"h100", graph.F4, graph.BF16, 1, 1}, {"a100", graph.F4, graph.BF16, 1, 1}, {"a100", graph.F8, graph.BF16, 1, 1},
	} {
		if got := float64(step(c.machine, c.few) / step(c.machine, c.of)); got < c.at || got > c.most {
			t.Errorf("%s: products of %v take %.3f times as long as of %v, want %g to %g", c.machine, c.few, got, c.of, c.at, c.most)
		}
	}
}
