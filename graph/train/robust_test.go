package train

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"placer/graph"

	"pgregory.net/rapid"
)

// TestAnyKindAnyOperands derives graphs of every kind that has a rule, and of
// some that have none, with operands that the kind may not expect: importers
// bring such. Derive must give a graph whose backward ops name forward ops and
// whose variables are updated at most once.
func TestAnyKindAnyOperands(t *testing.T) {
	kinds := append(slices.Sorted(maps.Keys(rules)), slices.Sorted(maps.Keys(stops))...)
	kinds = append(kinds, "LSTM", "Resize", "NoSuchKind", "Prod", "ScatterND", "If", "DynamicPartition", "GlobalMaxPool")
	rapid.Check(t, func(rt *rapid.T) {
		b := graph.NewBuilder("any")
		randomTensor := func() graph.Tensor {
			x := graph.Tensor{DType: rapid.SampledFrom([]graph.DType{graph.F32, graph.F32, graph.F32, graph.BF16, graph.I32, graph.Bool}).Draw(rt, "type"), Bytes: graph.Auto}
			switch rapid.IntRange(0, 4).Draw(rt, "rank") {
			case 0:
				x.Shape = graph.Shape{}
			case 1:
				x.Shape = graph.Shape{3}
			case 2:
				x.Shape = graph.Shape{2, 3}
			case 3:
				x.Shape = graph.Shape{4, 2, 3, 1}
			case 4:
				x.Bytes = 24
			}
			return x
		}
		var all []graph.TensorID
		for k := range 3 {
			x := randomTensor()
			x.Resident = true
			all = append(all, b.Output(b.Op(graph.Op{Name: "v" + strconv.Itoa(k), Kind: "VariableV2", Params: 6, Resident: 24, Bytes: graph.Auto}, nil, x), 0))
		}
		for k := range rapid.IntRange(1, 12).Draw(rt, "ops") {
			in := rapid.SliceOfN(rapid.SampledFrom(all), 0, 5).Draw(rt, "in")
			outs := make([]graph.Tensor, rapid.IntRange(1, 6).Draw(rt, "outs"))
			for j := range outs {
				outs[j] = randomTensor()
			}
			op := graph.Op{Name: "op" + strconv.Itoa(k), Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Bytes: graph.Auto, FLOPs: 12}
			if rapid.Bool().Draw(rt, "product") {
				op.GEMM = graph.GEMM{Batch: 1, M: 2, N: 3, K: 1}
			}
			i := b.Op(op, in, outs...)
			for j := range outs {
				all = append(all, b.Output(i, j))
			}
		}
		g, err := b.Build()
		if err != nil {
			rt.Fatal(err)
		}
		cfg := Config{
			Optimizer:    Optimizer(rapid.IntRange(0, int(numOptimizers)-1).Draw(rt, "optimizer")),
			StaticShapes: rapid.Bool().Draw(rt, "static"), GateGradients: rapid.Bool().Draw(rt, "gate"),
			ClipGlobalNorm: rapid.Bool().Draw(rt, "clip"), AllGradients: rapid.Bool().Draw(rt, "all"), InitOps: rapid.Bool().Draw(rt, "init"),
			MasterWeights: rapid.Bool().Draw(rt, "master"), DenseTables: rapid.Bool().Draw(rt, "dense"),
		}
		d, err := Derive(g, cfg)
		if err != nil {
			return // no loss: Derive says so
		}
		if err := d.Check(); err != nil {
			rt.Fatal(err)
		}
		updated := map[graph.TensorID]int{}
		for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
			o := d.Op(i)
			if o.Phase == graph.Backward && (o.Forward < 0 || d.Op(o.Forward).Phase != graph.Forward) {
				rt.Fatalf("backward op %s of op %d", o.Name, o.Forward)
			}
			switch o.Kind {
			case "ApplyGradientDescent", "ScatterSub", "ApplyMomentum", "SparseApplyMomentum", "ApplyAdam", "AssignSub":
				if v := d.Inputs(i)[0]; o.Phase == graph.Update {
					if updated[v]++; updated[v] > 1 {
						rt.Fatalf("%s is updated twice", d.Op(d.Tensor(v).Producer).Name)
					}
				}
			}
		}
	})
}

// An attention of a single operand, of which a file may have any, has a gradient too.
func TestAttentionOfOneOperand(t *testing.T) {
	b := graph.NewBuilder("one")
	x := graph.Tensor{DType: graph.F32, Shape: graph.Shape{2, 3, 4, 5}, Bytes: graph.Auto}
	v := x
	v.Resident = true
	w := b.Output(b.Op(graph.Op{Name: "v", Kind: "VariableV2", Params: 120, Bytes: graph.Auto}, nil, v), 0)
	b.Op(graph.Op{Name: "a", Kind: graph.Attention, Bytes: graph.Auto, GEMM: graph.GEMM{Batch: 6, M: 4, N: 5, K: 4}}, []graph.TensorID{w}, x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Derive(g, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
}
