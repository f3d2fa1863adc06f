package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/hw/gpu/fake"
	"placer/sim"
	"placer/units"
)

// Parts is what fakeCosts are made of: a product is arithmetic alone, so that a
// kernel with one takes what the product takes as long as its epilogue moves no
// more than the result.
func (c fakeCosts) Parts(i graph.OpID, d int) fuse.Parts {
	w := workOf(c.g, i, true)
	switch w.kind {
	case nothing:
		return fuse.Parts{Launch: 1e-12}
	case product:
		return fuse.Parts{Compute: c.OpSeconds(i, d) - units.Seconds(c.base/1e9), Launch: units.Seconds(c.base / 1e9)}
	}
	return fuse.Parts{PerByte: 1 / c.f.Bandwidth, Launch: units.Seconds(c.base / 1e9)}
}

// fusible is a graph of n steps that a plan may fuse: products with one unary op
// behind them, which nothing else joins; loops of several inputs, reductions and
// views; sizes are multiples of 16 bytes.
func fusible(r *rand.Rand, n int) *graph.Graph {
	b := graph.NewBuilder("fusible")
	var tensors []graph.TensorID
	pick := func(k int) (in []graph.TensorID) {
		for range k {
			if len(tensors) > 0 {
				in = append(in, tensors[len(tensors)-1-r.IntN(min(len(tensors), 8))])
			}
		}
		return in
	}
	var ops []graph.OpID
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Forward: graph.None, Bytes: graph.Auto}
		size := units.Bytes(16 * (1 + r.IntN(1<<16)))
		var id graph.OpID
		switch r.IntN(6) {
		case 0:
			m, n := 16*(1+int64(r.IntN(20))), 16*(1+int64(r.IntN(20)))
			o.Kind, o.GEMM = "MatMul", graph.GEMM{Batch: 1, M: m, N: n, K: 1 + int64(r.IntN(300))}
			o.FLOPs = o.GEMM.FLOPs()
			c := graph.Tensor{Bytes: units.Bytes(4 * m * n)}
			made := b.Op(o, pick(2), c)
			id = b.Op(graph.Op{Name: o.Name + "/tanh", Kind: "Tanh", Forward: graph.None, Bytes: graph.Auto}, []graph.TensorID{b.Output(made, 0)}, c)
		case 1:
			o.Kind = "Sum"
			id = b.Op(o, pick(1), graph.Tensor{Bytes: 16})
		case 2:
			o.Kind = "Reshape"
			in := pick(1)
			if len(in) == 0 {
				o.Kind = "Add"
			}
			id = b.Op(o, in, graph.Tensor{Bytes: size})
		default:
			o.Kind = "Add"
			if r.IntN(6) == 0 {
				o.Workspace = units.Bytes(r.IntN(1 << 20))
			}
			id = b.Op(o, pick(1+r.IntN(3)), graph.Tensor{Bytes: size})
		}
		if len(ops) > 0 && r.IntN(6) == 0 {
			b.Control(ops[r.IntN(len(ops))], id)
		}
		ops = append(ops, id)
		tensors = append(tensors, b.Output(id, 0))
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// fuseAll is problem with a plan that fuses what it may, with random priorities,
// but no Tanh with its readers.
func fuseAll(t interface{ Fatal(...any) }, g *graph.Graph, m *hw.Machine, c sim.CostModel, r *rand.Rand, gpus func(d int) int) *Problem {
	p := problem(t, g, m, c, r, gpus)
	p.Plan.Fusion = make([]uint8, g.NumOps())
	for i := range p.Plan.Fusion {
		if g.Op(graph.OpID(i)).Kind != "Tanh" {
			p.Plan.Fusion[i] = uint8(r.IntN(4))
		}
		if in := g.Inputs(graph.OpID(i)); g.Op(graph.OpID(i)).Kind == "Tanh" {
			p.Plan.Device[i] = p.Plan.Device[g.Tensor(in[0]).Producer]
		}
	}
	s, err := sim.New(g, m, c, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	if p.Predicted, err = s.Run(p.Plan, sim.Options{Trace: true}); p.Predicted == nil {
		t.Fatal(err)
	}
	return p
}

// TestFusedAsSimulated: fused plans too take exactly the simulated step on GPUs
// that take the predicted times, kernel by kernel, eagerly and as a graph.
func TestFusedAsSimulated(t *testing.T) {
	several := 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		f := fake.Default()
		f.Devices, f.Call, f.Node = 1, 0, f.Launch
		g := fusible(r, 1+r.IntN(60))
		costs := fakeCosts{g, &f, f.Launch}
		p := fuseAll(t, g, mesh(3, &f, 50e-6, 10e9), costs, r, together)
		for _, mode := range []Mode{Eager, Captured} {
			d := fake.New(f)
			cfg := testConfig(d)
			cfg.Mode = mode
			got, err := Run(context.Background(), cfg, p, costs, d, d.BLAS())
			if err != nil {
				t.Fatal(err)
			}
			want := p.Predicted.Makespan
			if mode == Captured {
				want += units.Seconds(f.Launch / 1e9) // of the graph
			}
			near(t, mode.String()+": step", got.Makespan, want)
			if got.Kernels != p.Predicted.Kernels || len(got.Trace.Ops) != got.Kernels || len(got.Trace.Transfers) != len(p.Predicted.Trace.Transfers) {
				t.Errorf("%d kernels, %d and %d transfers traced, want %d kernels and %d transfers", got.Kernels, len(got.Trace.Ops), len(got.Trace.Transfers), p.Predicted.Kernels, len(p.Predicted.Trace.Transfers))
			}
			spans := map[graph.OpID]sim.OpSpan{}
			for _, x := range p.Predicted.Trace.Ops {
				spans[x.Op] = x
				several += min(1, len(x.Fused))
			}
			for _, x := range got.Trace.Ops {
				w, ok := spans[x.Op]
				if !ok || !slices.Equal(x.Fused, w.Fused) {
					t.Fatalf("kernel %d with %v, want %v", x.Op, x.Fused, w.Fused)
				}
				if math.Abs(float64(x.Start-w.Start)) > 1e-8+1e-5*float64(w.Start) && w.End-w.Start > 1e-9 {
					t.Errorf("kernel %d starts at %v, want %v", x.Op, x.Start, w.Start)
				}
			}
		}
	})
	if several == 0 {
		t.Error("nothing was fused")
	}
}

// TestWorkOfKernel: what stands for kernels of several ops.
func TestWorkOfKernel(t *testing.T) {
	const side = 64 // of the product: operands and result of 16 KiB
	const size = 4 * side * side
	matMul := func(b *graph.Builder, a, x graph.TensorID) graph.TensorID {
		o := graph.Op{Name: "product", Kind: "MatMul", DType: graph.F32, GEMM: graph.GEMM{Batch: 1, M: side, N: side, K: side}, Bytes: graph.Auto, Forward: graph.None}
		o.FLOPs = o.GEMM.FLOPs()
		return b.Output(b.Op(o, []graph.TensorID{a, x}, graph.Tensor{Bytes: size}), 0)
	}
	made := 0
	loop := func(b *graph.Builder, kind graph.Kind, out units.Bytes, in ...graph.TensorID) graph.TensorID {
		made++
		return b.Output(b.Op(graph.Op{Name: fmt.Sprint("loop", made), Kind: kind, DType: graph.F32, FLOPs: 1 << 14, Bytes: graph.Auto, Forward: graph.None}, in, graph.Tensor{Bytes: out}), 0)
	}
	type want struct {
		class        string
		product, add bool
		in, out, fma uint64 // of the stream; all 0 for none
	}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x []graph.TensorID) // x: three inputs of the result's size, and a bias
		ops   []graph.OpID
		want  want
	}{
		"an activation": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Tanh", size, matMul(b, x[0], x[1]))
		}, []graph.OpID{4, 5}, want{class: "fused gemm", product: true}},
		"a bias": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Add", size, matMul(b, x[0], x[1]), x[3])
		}, []graph.OpID{4, 5}, want{class: "fused gemm", product: true}},
		"an operand as large as the result": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Add", size, matMul(b, x[0], x[1]), x[2])
		}, []graph.OpID{4, 5}, want{class: "fused gemm", product: true, add: true}},
		"two such operands": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Add", size, matMul(b, x[0], x[1]), x[2], x[0])
		}, []graph.OpID{4, 5}, want{class: "fused gemm", product: true, add: true, in: size, fma: 2}},
		"a product that is read outside too": {func(b *graph.Builder, x []graph.TensorID) {
			m := matMul(b, x[0], x[1])
			loop(b, "Tanh", size, m)
			loop(b, "Tanh", size, m)
		}, []graph.OpID{4, 5}, want{class: "fused gemm", product: true, out: size}},
		"loops": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Mul", size, loop(b, "Add", size, x[0], x[1]), x[2])
		}, []graph.OpID{4, 5}, want{class: "fused elementwise", in: 3 * size, out: size, fma: 1}},
		"loops and a sum": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Sum", 16, loop(b, "Add", size, x[0], x[1]))
		}, []graph.OpID{4, 5}, want{class: "fused reduction", in: 2 * size, out: 16, fma: 2}},
		"a view between loops": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Tanh", size, loop(b, "Reshape", size, loop(b, "Tanh", size, x[0])))
		}, []graph.OpID{4, 5, 6}, want{class: "fused elementwise", in: size, out: size, fma: 4}},
		"views": {func(b *graph.Builder, x []graph.TensorID) {
			loop(b, "Identity", size, loop(b, "Reshape", size, x[0]))
		}, []graph.OpID{4, 5}, want{class: "fused meta"}},
	} {
		b := graph.NewBuilder(name)
		var x []graph.TensorID
		for _, n := range []units.Bytes{size, size, size, 4 * side} {
			x = append(x, b.Output(b.Op(graph.Op{Name: fmt.Sprint("in", len(x)), Kind: "Placeholder", Forward: graph.None, Bytes: graph.Auto}, nil, graph.Tensor{Bytes: n}), 0))
		}
		c.build(b, x)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		all, class := workOfKernel(g, fuse.Roles(g), c.ops, true)
		got := want{class: class}
		for _, w := range all {
			switch w.kind {
			case product:
				got.product, got.add = true, w.product.Layout.Add
			case stream:
				got.in, got.out, got.fma = w.in, w.out, w.fma
			}
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
