package roofline

import (
	"testing"

	"placer/graph"
	"placer/hw"
)

// The time of a product does not depend on which ops of other classes and types come before
// it: ops of one GEMM whose kinds differ in bandwidth.
func TestProductsAreKeptApart(t *testing.T) {
	// Deep and small: split in depth, whose partial sums take memory traffic.
	product := graph.GEMM{Batch: 1, M: 128, N: 512, K: 8192}
	ops := []graph.Op{{Kind: "Attention"}, {Kind: "MatMul"}, {Kind: "Mystery"}, {Kind: "Softmax"}, {Kind: "Gather"}, {Kind: "MatMul", DType: graph.F64}, {Kind: "MatMul", DType: graph.BF16}}
	times := func(m *hw.Machine, order ...int) map[int]float64 {
		b := graph.NewBuilder("ops")
		for _, k := range order {
			o := ops[k]
			o.Name, o.GEMM, o.FLOPs, o.Bytes, o.Forward = string(o.Kind)+o.DType.String(), product, product.FLOPs(), 1, graph.None
			b.Op(o, nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(g, m, Default())
		if err != nil {
			t.Fatal(err)
		}
		at := map[int]float64{}
		for i, k := range order {
			at[k] = float64(r.OpSeconds(graph.OpID(i), 0))
		}
		return at
	}
	for _, name := range hw.Names() {
		m, err := hw.Take(name, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		differ := false
		for a := range ops {
			alone := times(m, a)
			for b := range ops {
				if a == b {
					continue
				}
				if after := times(m, b, a); after[a] != alone[a] {
					t.Errorf("%s: %s (%v) takes %g s behind %s, %g s alone", name, ops[a].Kind, ops[a].DType, after[a], ops[b].Kind, alone[a])
				}
				differ = differ || alone[a] != times(m, b)[b]
			}
		}
		if !differ {
			t.Errorf("%s: all ops take the same time", name)
		}
	}
}
