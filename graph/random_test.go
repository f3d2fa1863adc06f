package graph_test

import (
	"fmt"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/units"
)

var someKinds = []graph.Kind{"MatMul", "AddV2", "VariableV2", "Reshape", "Gather", "Conv2D", "Foreign"}

// drawGraph draws a small graph that uses every field. Its ops are added in a
// drawn order, so that Build has to sort.
func drawGraph(t *rapid.T) *graph.Graph {
	n := rapid.IntRange(1, 12).Draw(t, "ops")
	type drawn struct {
		op      graph.Op
		outs    []graph.Tensor
		in      [][2]int // op, slot
		control []int
	}
	ops := make([]drawn, n)
	size := rapid.Int64Range(0, 1<<40)
	for i := range ops {
		x := &ops[i]
		x.op = graph.Op{
			Name: fmt.Sprintf("op%d%s", i, rapid.SampledFrom([]string{"", ":0", ":7", "/é\"\\", ": 1"}).Draw(t, "suffix")),
			Kind: rapid.SampledFrom(someKinds).Draw(t, "kind"), Phase: graph.Phase(rapid.IntRange(0, 2).Draw(t, "phase")),
			DType: graph.DType(rapid.IntRange(0, 9).Draw(t, "dtype")), Precise: rapid.Bool().Draw(t, "precise"), FLOPs: units.FLOPs(rapid.Float64Range(0, 1e20).Draw(t, "flops")),
			Bytes: units.Bytes(rapid.Int64Range(-1, 1<<40).Draw(t, "bytes")), Resident: units.Bytes(size.Draw(t, "resident")), Params: size.Draw(t, "params"),
			Workspace: units.Bytes(size.Draw(t, "workspace")), Layer: rapid.Int32Range(0, 9).Draw(t, "layer"), Group: rapid.Int32Range(0, 3).Draw(t, "group"),
			Forward: graph.OpID(rapid.IntRange(-1, n-1).Draw(t, "forward")),
			Repeats: rapid.SampledFrom([]int64{0, 1, 2, 1 << 20}).Draw(t, "repeats"), Kernels: rapid.SampledFrom([]int64{0, 1, 7}).Draw(t, "kernels"),
			Module: rapid.SampledFrom([]string{"", "h.0", "h.1.\"mlp\""}).Draw(t, "module"),
		}
		if rapid.Bool().Draw(t, "product") {
			x.op.GEMM = graph.GEMM{Batch: 1, M: 1 + size.Draw(t, "m"), N: 3, K: 4}
		}
		for range rapid.IntRange(0, 3).Draw(t, "outs") {
			y := graph.Tensor{DType: graph.DType(rapid.IntRange(0, 9).Draw(t, "tensor dtype")), Bytes: units.Bytes(rapid.Int64Range(0, 99).Draw(t, "tensor bytes")), Resident: rapid.Bool().Draw(t, "tensor resident")}
			if rapid.Bool().Draw(t, "shaped") {
				y.Shape = rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 4).Draw(t, "shape")
				y.Bytes = rapid.SampledFrom([]units.Bytes{graph.Auto, 7}).Draw(t, "shaped bytes")
			}
			x.outs = append(x.outs, y)
		}
		for p := range i {
			for s := range ops[p].outs {
				for range rapid.IntRange(0, 2).Draw(t, "reads") {
					x.in = append(x.in, [2]int{p, s})
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "waits") == 0 {
				x.control = append(x.control, p)
			}
		}
	}
	order := rapid.Permutation(seq(n)).Draw(t, "order")
	at := make([]int, n)    // op -> position of adding
	first := make([]int, n) // op -> its first tensor
	b, tensors := graph.NewBuilder("g"), 0
	for k, i := range order {
		at[i], first[i] = k, tensors
		tensors += len(ops[i].outs)
	}
	for _, i := range order {
		x := ops[i]
		var in []graph.TensorID
		for _, r := range x.in {
			in = append(in, graph.TensorID(first[r[0]]+r[1]))
		}
		if x.op.Forward >= 0 {
			x.op.Forward = graph.OpID(at[x.op.Forward])
		}
		b.Op(x.op, in, x.outs...)
	}
	for i, x := range ops {
		for _, c := range x.control {
			b.Control(graph.OpID(at[c]), graph.OpID(at[i]))
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}
