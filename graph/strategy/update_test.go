package strategy

import (
	"testing"

	"placer/graph"
	"placer/units"
)

// TestProductsOfUpdates: replicas that share an update out each do their share of the products of its rule
// (Muon's), as of its other operations.
func TestProductsOfUpdates(t *testing.T) {
	b := graph.NewBuilder("muon")
	f32 := func(shape ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto}
	}
	w := f32(64, 256)
	w.Resident = true
	weight := b.Output(b.Op(graph.Op{Name: "w", Kind: "VariableV2", Params: 64 * 256, Resident: 4 * 64 * 256, Group: 1, Forward: graph.None}, nil, w), 0)
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, f32(8, 64)), 0)
	f := b.Op(graph.Op{Name: "f", Kind: "MatMul", GEMM: graph.GEMM{Batch: 1, M: 8, N: 256, K: 64}, Forward: graph.None}, []graph.TensorID{x, weight}, f32(8, 256))
	g := b.Op(graph.Op{Name: "g", Kind: "MatMul", Phase: graph.Backward, GEMM: graph.GEMM{Batch: 1, M: 64, N: 256, K: 8}, Forward: f}, []graph.TensorID{x, b.Output(f, 0)}, f32(64, 256))
	rule := graph.GEMM{Batch: 1, M: 64, N: 64, K: 2*256 + 64}
	b.Op(graph.Op{Name: "u", Kind: "ApplyMuon", Phase: graph.Update, DType: graph.BF16, GEMM: rule, Repeats: 5, Kernels: 3, FLOPs: 5*rule.FLOPs() + 1000, Bytes: 1 << 20, Group: 1, Forward: graph.None}, []graph.TensorID{weight, b.Output(g, 0)})
	m := modelOf(t, b)
	seconds := make([]float64, m.Micro.NumOps())
	for text, share := range map[string]units.FLOPs{"ddp=4": 1, "zero-1=4": 4, "zero-3=4": 4} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		step, err := Derive(m, NewBlocks(m, seconds), s, Options{Fold: true})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i := range graph.OpID(step.Graph.NumOps()) {
			if o := step.Graph.Op(i); o.Kind == "ApplyMuon" {
				found++
				if o.Repeats != 5 || o.GEMM.FLOPs()*share != rule.FLOPs() || o.FLOPs*share != 5*rule.FLOPs()+1000 {
					t.Errorf("%s: %v and %v, %d times, want a %v-th of %v", text, o.GEMM, o.FLOPs, o.Repeats, share, rule)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s: %d updates, want 1", text, found)
		}
	}
}

// TestAssignments: what a buffer is assigned, as the statistics of batch norm, is the last micro-batch's, of each
// replica by itself: it is neither added up nor reduced, and not twice in a stage that shares gradients out.
func TestAssignments(t *testing.T) {
	b := graph.NewBuilder("norm")
	f32 := func(shape ...int64) graph.Tensor {
		return graph.Tensor{DType: graph.F32, Shape: shape, Bytes: graph.Auto}
	}
	held := func(name string, shape ...int64) graph.TensorID {
		n := shape[0] * shape[len(shape)-1]
		x := f32(shape...)
		x.Resident = true
		return b.Output(b.Op(graph.Op{Name: name, Kind: "VariableV2", Params: n, Resident: units.Bytes(4 * n), Forward: graph.None}, nil, x), 0)
	}
	mean := held("mean", 64)
	weights := []graph.TensorID{held("w1", 64, 64), held("w2", 64, 64)}
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, f32(8, 64)), 0)
	norm := b.Op(graph.Op{Name: "norm", Kind: "FusedBatchNormV3", Forward: graph.None}, []graph.TensorID{x, mean}, f32(8, 64), f32(64))
	at := b.Output(norm, 0)
	var products []graph.OpID
	for k, w := range weights {
		products = append(products, b.Op(graph.Op{Name: "f" + itoa(k), Kind: "MatMul", Layer: int32(k + 1), GEMM: graph.GEMM{Batch: 1, M: 8, N: 64, K: 64}, Forward: graph.None}, []graph.TensorID{at, w}, f32(8, 64)))
		at = b.Output(products[k], 0)
	}
	for k := 1; k >= 0; k-- {
		g := b.Op(graph.Op{Name: "g" + itoa(k), Kind: "MatMul", Layer: int32(k + 1), Phase: graph.Backward, GEMM: graph.GEMM{Batch: 1, M: 64, N: 64, K: 8}, Forward: products[k]}, []graph.TensorID{at, x}, f32(64, 64), f32(8, 64))
		at = b.Output(g, 1)
		b.Op(graph.Op{Name: "u" + itoa(k), Kind: "ApplyGradientDescent", Phase: graph.Update, Layer: int32(k + 1), Forward: graph.None}, []graph.TensorID{weights[k], b.Output(g, 0)})
	}
	b.Op(graph.Op{Name: "a", Kind: "Assign", Phase: graph.Update, Forward: graph.None}, []graph.TensorID{mean, b.Output(norm, 1)})
	m := modelOf(t, b)
	seconds := make([]float64, m.Micro.NumOps())
	for i := range seconds {
		seconds[i] = 1e-3
	}
	for _, text := range []string{"ddp=2 mb=2", "zero-3=2 mb=2", "zero-3=2 1f1b=2 mb=2"} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		blocks := NewBlocks(m, seconds)
		opt := Options{}
		if s.Pipeline > 1 {
			opt.Bounds = []int{0, blocks.n / 2}
		}
		step, err := Derive(m, blocks, s, opt)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range graph.OpID(step.Graph.NumOps()) {
			if o := step.Graph.Op(i); o.Kind == "AssignAdd" && m.Micro.Op(step.From[i]).Name == "norm" {
				t.Errorf("%s: %s adds statistics up", text, o.Name)
			}
		}
	}
}
