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

// Products of 8-bit floats have the rate of 16 bits on a chip without units for them, as kernels
// that widen such weights do, and a higher one where there are units.
func TestNarrowFloats(t *testing.T) {
	m := graph.GEMM{Batch: 1, M: 8192, N: 8192, K: 8192}
	for _, c := range []struct {
		machine string
		low, up float64 // of the time in f16
	}{{"a100", 1, 1}, {"v100", 1, 1}, {"p100", 1, 1}, {"h100", 0.45, 0.7}, {"b200", 0.45, 0.7}} {
		x, err := hw.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		d := newDeviceModel(&x.Devices[0], Default())
		op := func(dt graph.DType) *graph.Op {
			return &graph.Op{Kind: "MatMul", DType: dt, GEMM: m, FLOPs: m.FLOPs()}
		}
		wide, narrow := d.cost(op(graph.F16)), d.cost(op(graph.F8))
		if r := float64(narrow.Compute / wide.Compute); r < c.low || r > c.up {
			t.Errorf("%s: a product of 8 bits takes %.3g times that of 16, want %g to %g", c.machine, r, c.low, c.up)
		}
	}
}
