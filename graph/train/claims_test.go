package train_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/train"
	"placer/units"
)

// chain is x[4,8] through layers products with square weights.
func chain(t testing.TB, layers int) *graph.Graph {
	n := newNet("chain")
	x := n.op("Placeholder", nil, f32(4, 8))
	for k := range layers {
		x = n.matMul(x, n.variable(fmt.Sprintf("w%d", k), 8, 8))
	}
	n.op("Mean", []graph.TensorID{x, n.op("Const", nil, i32(2))}, f32())
	return n.build(t)
}

func productFLOPs(g *graph.Graph, p graph.Phase) (f units.FLOPs) {
	for i := graph.OpID(0); int(i) < g.NumOps(); i++ {
		if o := g.Op(i); o.Phase == p && !o.GEMM.IsZero() {
			f += o.FLOPs
		}
	}
	return f
}

func TestBackwardFLOPs(t *testing.T) {
	const one = 2 * 4 * 8 * 8 // a product
	for _, layers := range []int{1, 2, 5} {
		g := chain(t, layers)
		for _, c := range []struct {
			name string
			cfg  train.Config
			want units.FLOPs
		}{
			{"first layer has no input gradient", train.Default(), units.FLOPs(one * (2*layers - 1))},
			{"all gradients", train.Config{AllGradients: true}, units.FLOPs(one * 2 * layers)},
		} {
			if got := productFLOPs(derive(t, g, c.cfg), graph.Backward); got != c.want {
				t.Errorf("%d layers, %s: %g FLOPs of products, want %g", layers, c.name, float64(got), float64(c.want))
			}
		}
	}
}

// An op without a rule that is products in the main, as attention and recurrent layers
// are, has a gradient of products: twice the forward's, and twice what is beside them.
func TestGradientOfSeveralProducts(t *testing.T) {
	for _, kind := range []graph.Kind{"ProjectedAttention", "LSTM", "GRU"} {
		n := newNet("opaque")
		m := graph.GEMM{Batch: 6, M: 32, N: 16, K: 8}
		x := n.matMul(n.op("Placeholder", nil, f32(4, 8)), n.variable("w", 8, 8))
		n.add(graph.Op{Kind: kind, GEMM: m, FLOPs: m.FLOPs() + 100}, []graph.TensorID{x, n.variable("v", 8, 8)}, f32(4, 8))
		g := derive(t, n.build(t), train.Default())
		found := false
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Kind == kind+"Grad" {
				found = true
				if want := (graph.GEMM{Batch: 12, M: 32, N: 16, K: 8}); o.GEMM != want || o.FLOPs != want.FLOPs()+200 {
					t.Errorf("%s: %+v of %v, want %+v", kind, o.GEMM, o.FLOPs, want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no gradient", kind)
		}
	}
}

// The gradient of attention in one kernel is one of 2.5 times the operations, which reads what the
// forward op has read and written and holds the queries' gradient in f32.
func TestGradientOfAttention(t *testing.T) {
	n := newNet("attention")
	x := n.op("Placeholder", nil, f32(2, 3, 5, 8))
	in := []graph.TensorID{x, x, x}
	for k := range in {
		in[k] = n.op("Mul", []graph.TensorID{x, n.variable(fmt.Sprint("w", k), 2, 3, 5, 8)}, f32(2, 3, 5, 8))
	}
	m := graph.Attending{Heads: 6, Queries: 5, Seen: 5, KeyDim: 8, ValueDim: 8}
	n.add(graph.Op{Kind: graph.Attention, GEMM: m.Forward(), FLOPs: m.Forward().FLOPs()}, in, f32(2, 3, 5, 8), f32(2, 3, 5))
	g := derive(t, n.build(t), train.Default())
	const size = 4 * 2 * 3 * 5 * 8
	found := 0
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Kind != graph.AttentionGrad {
			continue
		}
		found++
		if o.GEMM != m.Backward() || o.FLOPs != 5*2*6*5*5*8 || o.Kernels != 3 || o.Workspace != size || o.Bytes != 8*size+4*2*3*5 || len(g.Inputs(i)) != 6 {
			t.Errorf("%+v reads %d", o, len(g.Inputs(i)))
		}
	}
	if found != 1 {
		t.Errorf("%d gradients", found)
	}
}

// The gradient of an op that repeats does too, at twice the cost where it is opaque: in
// each iteration it reads the weights.
func TestGradientOfIterations(t *testing.T) {
	n := newNet("repeated")
	m := graph.GEMM{Batch: 1, M: 4, N: 8, K: 8}
	x := n.op("Placeholder", nil, f32(4, 8))
	y := n.add(graph.Op{Kind: "MatMul", Repeats: 5, GEMM: m, FLOPs: 5 * m.FLOPs()}, []graph.TensorID{x, n.variable("w", 8, 8)}, f32(4, 8))
	z := n.add(graph.Op{Kind: "Tanh", Repeats: 5, FLOPs: 5 * 4 * 32}, []graph.TensorID{y}, f32(4, 8))
	l := n.add(graph.Op{Kind: "Loop", Repeats: 10, Kernels: 3, GEMM: m, FLOPs: 10 * (m.FLOPs() + 7)}, []graph.TensorID{z, n.variable("v", 8, 8)}, f32(4, 8))
	n.At(n.TensorAt(l).Producer).Bytes = 1000
	g := derive(t, n.build(t), train.Default())
	found := map[graph.Kind]int{}
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Backward {
			continue
		}
		found[o.Kind]++
		switch want := (graph.Op{Repeats: 5}); o.Kind {
		case "MatMul": // of the weights: of the input there is none
			want.GEMM, want.FLOPs, want.Bytes = graph.GEMM{Batch: 1, M: 8, N: 8, K: 4}, 5*m.FLOPs(), 5*4*(32+32+64)
			sameCost(t, o, want)
		case "TanhGrad":
			want.FLOPs, want.Bytes = 5*4*32, 5*4*(32+32+32)
			sameCost(t, o, want)
		case "LoopGrad":
			want.Repeats, want.Kernels, want.GEMM, want.FLOPs, want.Bytes = 10, 3, graph.GEMM{Batch: 2, M: 4, N: 8, K: 8}, 20*(m.FLOPs()+7), 2000
			sameCost(t, o, want)
		default:
			if o.Repeats > 1 {
				t.Errorf("%s (%s) repeats", o.Name, o.Kind)
			}
		}
	}
	if found["MatMul"] != 1 || found["TanhGrad"] != 1 || found["LoopGrad"] != 1 {
		t.Errorf("gradients %v", found)
	}
}

// sameCost compares what o costs.
func sameCost(t *testing.T, o *graph.Op, want graph.Op) {
	t.Helper()
	if o.Repeats != want.Repeats || o.Kernels != want.Kernels || o.GEMM != want.GEMM || o.FLOPs != want.FLOPs || o.Bytes != want.Bytes {
		t.Errorf("%s: %d times %d, %+v, %v, %d bytes; want %+v", o.Name, o.Repeats, o.Kernels, o.GEMM, o.FLOPs, o.Bytes, want)
	}
}

// TestTransposedProducts checks the dimensions of both gradients.
func TestTransposedProducts(t *testing.T) {
	for _, c := range []struct {
		name        string
		kind        graph.Kind
		a, b, out   graph.Shape
		fwd, da, db graph.GEMM
	}{
		{"batched", "BatchMatMul", graph.Shape{6, 2, 5}, graph.Shape{6, 5, 3}, graph.Shape{6, 2, 3},
			graph.GEMM{Batch: 6, M: 2, N: 3, K: 5}, graph.GEMM{Batch: 6, M: 2, N: 5, K: 3}, graph.GEMM{Batch: 6, M: 5, N: 3, K: 2}},
		{"one weight for all batches", "MatMul", graph.Shape{6, 2, 5}, graph.Shape{5, 3}, graph.Shape{6, 2, 3},
			graph.GEMM{Batch: 6, M: 2, N: 3, K: 5}, graph.GEMM{Batch: 6, M: 2, N: 5, K: 3}, graph.GEMM{Batch: 1, M: 5, N: 3, K: 12}},
		{"weight stored transposed", "Gemm", graph.Shape{2, 5}, graph.Shape{3, 5}, graph.Shape{2, 3},
			graph.GEMM{Batch: 1, M: 2, N: 3, K: 5}, graph.GEMM{Batch: 1, M: 2, N: 5, K: 3}, graph.GEMM{Batch: 1, M: 3, N: 5, K: 2}},
		{"convolution", "Conv2D", graph.Shape{2, 4, 4, 7}, graph.Shape{3, 3, 7, 5}, graph.Shape{2, 4, 4, 5},
			graph.GEMM{Batch: 1, M: 32, N: 5, K: 63}, graph.GEMM{Batch: 1, M: 32, N: 63, K: 5}, graph.GEMM{Batch: 1, M: 63, N: 5, K: 32}},
		{"grouped convolution", "Conv2D", graph.Shape{2, 4, 4, 14}, graph.Shape{3, 3, 7, 10}, graph.Shape{2, 4, 4, 10},
			graph.GEMM{Batch: 2, M: 32, N: 5, K: 63}, graph.GEMM{Batch: 2, M: 32, N: 63, K: 5}, graph.GEMM{Batch: 2, M: 63, N: 5, K: 32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNet(c.name)
			a, b := n.variable("a", c.a...), n.variable("b", c.b...)
			y := n.add(graph.Op{Kind: c.kind, GEMM: c.fwd, FLOPs: c.fwd.FLOPs()}, []graph.TensorID{a, b}, f32(c.out...))
			n.op("L2Loss", []graph.TensorID{y}, f32())
			g := n.build(t)
			d := derive(t, g, train.Default())
			var got []graph.GEMM
			for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
				if o := d.Op(i); !o.GEMM.IsZero() {
					got = append(got, o.GEMM)
					if o.FLOPs != c.fwd.FLOPs() || o.GEMM.FLOPs() != c.fwd.FLOPs() {
						t.Errorf("%s: %g FLOPs, product %g, want %g", o.Name, float64(o.FLOPs), float64(o.GEMM.FLOPs()), float64(c.fwd.FLOPs()))
					}
				}
			}
			if want := []graph.GEMM{c.da, c.db}; !slices.Equal(got, want) {
				t.Errorf("products %v, want %v", got, want)
			}
		})
	}
}

// kindsOf counts the ops of g from op first on by kind.
func kindsOf(g *graph.Graph, first int) map[graph.Kind]int {
	n := map[graph.Kind]int{}
	for i := graph.OpID(first); int(i) < g.NumOps(); i++ {
		n[g.Op(i).Kind]++
	}
	return n
}

// TestSavedActivations checks which forward tensors the gradient of a kind reads:
// these stay in memory until then. The op reads x and w and makes y.
func TestSavedActivations(t *testing.T) {
	type want struct{ x, w, y bool }
	for _, c := range []struct {
		kind   graph.Kind
		inputs int
		want   want
	}{
		{"Tanh", 1, want{y: true}}, {"Sigmoid", 1, want{y: true}}, {"Relu", 1, want{y: true}}, {"Exp", 1, want{y: true}},
		{"Sqrt", 1, want{y: true}}, {"Softmax", 1, want{y: true}}, {"LogSoftmax", 1, want{y: true}},
		{"Square", 1, want{x: true}}, {"Log", 1, want{x: true}}, {"Gelu", 1, want{x: true}}, {"Softplus", 1, want{x: true}}, {"Erf", 1, want{x: true}},
		{"Neg", 1, want{}}, {"Identity", 1, want{}}, {"Reshape", 1, want{}}, {"Transpose", 1, want{}}, {"Cumsum", 1, want{}},
		{"MaxPool", 1, want{x: true, y: true}}, {"AvgPool", 1, want{}}, {"LRN", 1, want{x: true, y: true}},
		{"Add", 2, want{}}, {"Sub", 2, want{}}, {"Mul", 2, want{x: true, w: true}}, {"RealDiv", 2, want{x: true, w: true}},
		{"Maximum", 2, want{x: true, w: true}}, {"MatMul", 2, want{x: true, w: true}}, {"Conv2D", 2, want{x: true, w: true}},
		{"ConcatV2", 2, want{}}, {"Pack", 2, want{}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			n := newNet("saved")
			x := n.op("Tanh", []graph.TensorID{n.variable("x", 4, 4)}, f32(4, 4))
			w := n.op("Tanh", []graph.TensorID{n.variable("w", 4, 4)}, f32(4, 4))
			y := n.op(c.kind, []graph.TensorID{x, w}[:c.inputs], f32(4, 4))
			n.op("Sum", []graph.TensorID{n.op("Neg", []graph.TensorID{y}, f32(4, 4)), n.op("Const", nil, i32(2))}, f32())
			d := derive(t, n.build(t), train.Config{StaticShapes: true})
			op := d.Tensor(y).Producer
			var got want
			for i := graph.OpID(0); int(i) < d.NumOps(); i++ {
				o := d.Op(i)
				if o.Phase != graph.Backward || o.Forward != op || o.Kind == "ShapeN" {
					continue
				}
				in := d.Inputs(i)
				got.x = got.x || slices.Contains(in, x)
				got.w = got.w || slices.Contains(in, w)
				got.y = got.y || slices.Contains(in, y)
			}
			if got != c.want {
				t.Errorf("gradient reads %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestSharedWeights: an unrolled net has one product for the weights' gradient a
// step and one AddN of them all.
func TestSharedWeights(t *testing.T) {
	const steps = 7
	g := recurrent(t, steps)
	d := derive(t, g, train.Config{})
	products, sums := 0, 0
	for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
		first, _ := d.Outputs(i)
		switch o := d.Op(i); {
		case o.Kind == "MatMul" && d.Tensor(first).Shape.Equal(graph.Shape{7, 4}):
			products++
		case o.Kind == "AddN" && d.Tensor(first).Shape.Equal(graph.Shape{7, 4}):
			sums++
			if len(d.Inputs(i)) != steps || o.FLOPs != 28*(steps-1) {
				t.Errorf("%s adds %d gradients in %g FLOPs, want %d in %d", o.Name, len(d.Inputs(i)), float64(o.FLOPs), steps, 28*(steps-1))
			}
		}
	}
	if products != steps || sums != 1 {
		t.Errorf("%d products and %d sums, want %d and 1", products, sums, steps)
	}
}

// TestSparseGradients: nothing of the table's size is made for rows, except by
// Adam, which decays its slots as a whole.
func TestSparseGradients(t *testing.T) {
	n := newNet("sparse")
	e := n.variable("e", 1000, 3)
	for range 2 {
		x := n.op("GatherV2", []graph.TensorID{e, n.op("Placeholder", nil, i32(2)), n.op("Const", nil, i32())}, f32(2, 3))
		n.op("Sum", []graph.TensorID{x, n.op("Const", nil, i32(2))}, f32())
	}
	g := n.build(t)
	for _, c := range []struct {
		opt  train.Optimizer
		kind graph.Kind
		big  int // ops that make a tensor of the table's size, apart from slots and their reads
	}{
		{train.SGD, "ScatterSub", 0},
		{train.Momentum, "SparseApplyMomentum", 0},
		{train.Adam, "AssignSub", 6}, // m*beta1, v*beta2, sqrt, +eps, lr*m, division
	} {
		// Clipping scales the rows.
		d := derive(t, g, train.Config{Optimizer: c.opt, ClipGlobalNorm: true})
		big := 0
		for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
			first, end := d.Outputs(i)
			if first < end && d.Tensor(first).Bytes >= 12000 && !d.Tensor(first).Resident {
				big++
			}
		}
		whole := derive(t, g, train.Config{Optimizer: c.opt, ClipGlobalNorm: true, DenseTables: true})
		if k := kindsOf(whole, g.NumOps()); k["UnsortedSegmentSum"] != 2 || k["AddN"] == 0 || k["ConcatV2"] != 0 || k[c.kind] != 0 {
			t.Errorf("%v, dense: kinds %v", c.opt, k)
		}
		if k := kindsOf(d, g.NumOps()); big != c.big || k[c.kind] != 1 || k["AddN"] != 0 || k["ConcatV2"] != 4 {
			t.Errorf("%v: %d tables, kinds %v", c.opt, big, k)
		}
	}
}

// TestUpdates: every trainable variable is updated once, in its group, with the
// slots of its optimizer beside it.
func TestUpdates(t *testing.T) {
	g := mlp(t)
	for _, c := range []struct {
		opt   train.Optimizer
		slots int64
	}{{train.SGD, 0}, {train.Momentum, 1}, {train.Adam, 2}} {
		cfg := train.Config{Optimizer: c.opt}
		d := derive(t, g, cfg)
		updates := map[int32]int{}
		resident := map[int32]units.Bytes{}
		for i := graph.OpID(0); int(i) < d.NumOps(); i++ {
			o := d.Op(i)
			resident[o.Group] += o.Resident
			if o.Kind.Class() == graph.ClassUpdate && o.Kind != "Assign" {
				updates[o.Group]++
				v := d.Op(d.Tensor(d.Inputs(i)[0]).Producer)
				if o.Group == 0 || v.Group != o.Group || v.Params == 0 || v.Layer != o.Layer || o.Phase != graph.Update {
					t.Errorf("%v: %+v updates %+v", c.opt, o, v)
				}
				read := d.Op(d.Tensor(d.Inputs(i)[0]).Producer + 1)
				if read.Kind != "Identity" || read.Group != o.Group {
					t.Errorf("%v: read %+v of group %d", c.opt, read, o.Group)
				}
				if want := v.Resident * units.Bytes([]int{3, 5, 7}[c.opt]); o.Bytes != want {
					t.Errorf("%v: %s moves %d bytes, want %d", c.opt, o.Name, o.Bytes, want)
				}
			}
		}
		for i := graph.OpID(0); int(i) < g.NumOps(); i++ {
			if p := g.Op(i).Params; p > 0 {
				o := d.Op(i)
				if updates[o.Group] != 1 {
					t.Errorf("%v: %s has %d updates", c.opt, o.Name, updates[o.Group])
				}
				want := units.Bytes(4 * p * (1 + c.slots))
				if c.opt == train.Adam && o.Name == "w1" {
					want += 8 // the powers of the decay rates
				}
				if resident[o.Group] != want {
					t.Errorf("%v: group of %s holds %d bytes, want %d", c.opt, o.Name, resident[o.Group], want)
				}
			}
		}
	}
}

// TestForwardKept: forward ops stay as they are, annotations of backward ops are
// those of their forward op.
func TestForwardKept(t *testing.T) {
	g := recurrent(t, 3)
	d := derive(t, g, train.Default())
	for i := graph.OpID(0); int(i) < g.NumOps(); i++ {
		a, b := *g.Op(i), *d.Op(i)
		b.Group = a.Group
		if b.Forward != graph.None {
			t.Fatalf("forward op %s has a forward op", b.Name)
		}
		b.Forward = a.Forward
		if a != b || !slices.Equal(g.Inputs(i), d.Inputs(i)) || !slices.Equal(g.Control(i), d.Control(i)) {
			t.Fatalf("op %d: %+v became %+v", i, a, b)
		}
	}
	for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
		o := d.Op(i)
		switch o.Phase {
		case graph.Backward:
			if o.Forward < 0 || int(o.Forward) >= g.NumOps() || o.Layer != g.Op(o.Forward).Layer {
				t.Fatalf("backward op %+v", o)
			}
		case graph.Forward:
			t.Fatalf("op %s is a forward op", o.Name)
		}
	}
}

func TestLosses(t *testing.T) {
	build := func(scalarLoss bool) *graph.Graph {
		n := newNet("losses")
		w := n.variable("w", 2, 3)
		n.op("Tanh", []graph.TensorID{w}, f32(2, 3))
		n.op("TopK", []graph.TensorID{w}, f32(2, 1), i32(2, 1)) // integers need no seed
		n.op("ArgMax", []graph.TensorID{w}, i32(2))
		n.op("StopGradient", []graph.TensorID{w}, f32(2, 3))
		n.op("FusedBatchNorm", []graph.TensorID{w, w, w, w, w}, f32(2, 3), f32(3), f32(3), f32(3), f32(3))
		if scalarLoss {
			n.op("L2Loss", []graph.TensorID{w}, f32())
		}
		return n.build(t)
	}
	seeds := func(g *graph.Graph, cfg train.Config) (s []string) {
		d := derive(t, g, cfg)
		for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
			if strings.HasPrefix(d.Op(i).Name, "gradients/Fill") {
				s = append(s, string(d.Op(d.Op(i).Forward).Kind))
			}
		}
		return s
	}
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"outputs of any shape", seeds(build(false), train.Config{}), []string{"Tanh", "TopK", "FusedBatchNorm"}},
		{"a scalar is the loss", seeds(build(true), train.Config{}), []string{"L2Loss"}},
		{"named", seeds(build(true), train.Config{Loss: []graph.TensorID{2}}), []string{"Tanh"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: seeds for %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	g := mlp(t)
	trained := derive(t, g, train.Default())
	frozen := newNet("frozen")
	frozen.op("Tanh", []graph.TensorID{frozen.op("Placeholder", nil, f32(2))}, f32(2))
	groups := newNet("groups")
	w := groups.variable("w", 2)
	groups.At(0).Group, groups.At(1).Group = 1, 2
	groups.op("L2Loss", []graph.TensorID{w}, f32())
	for _, c := range []struct {
		name string
		g    *graph.Graph
		cfg  train.Config
		want string
	}{
		{"derived twice", trained, train.Default(), "is a backward op; the graph is a training graph already"},
		{"no variable", frozen.build(t), train.Default(), "no float output depends on a trainable variable"},
		{"groups disagree", groups.build(t), train.Default(), "op 1 (w/read): is in group 2, the variable it reads, op 0 (w), in group 1"},
		{"unknown optimizer", g, train.Config{Optimizer: 9}, "optimizer: Optimizer(9) is unknown"},
		{"loss out of range", g, train.Config{Loss: []graph.TensorID{1 << 20}}, "loss: tensor 1048576 does not exist"},
		{"loss without variables", g, train.Config{Loss: []graph.TensorID{0}}, "tensor 0 of op 0 (Placeholder): no trainable variable leads to it"},
		{"loss twice", g, train.Config{Loss: []graph.TensorID{-1, 3, 3}}, "loss 2: tensor 3 is negative or named twice"},
	} {
		if _, err := train.Derive(c.g, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	for o := range train.Optimizer(3) {
		if p, err := train.ParseOptimizer(o.String()); p != o || err != nil {
			t.Errorf("%v reads back as %v, %v", o, p, err)
		}
	}
	if _, err := train.ParseOptimizer("lion"); err == nil {
		t.Error("lion is read")
	}
}

// TestOptions counts what each option adds to the perceptron.
func TestOptions(t *testing.T) {
	g := mlp(t)
	count := func(cfg train.Config) map[graph.Kind]int { return kindsOf(derive(t, g, cfg), g.NumOps()) }
	plain := count(train.Config{})
	for _, c := range []struct {
		name string
		cfg  train.Config
		more map[graph.Kind]int
	}{
		// Gates: BiasAdd twice and the second MatMul pass two gradients each.
		{"gates", train.Config{GateGradients: true}, map[graph.Kind]int{"NoOp": 3, "Identity": 6}},
		// Four gradients: a norm, a product, an identity each; six constants; the
		// square root of twice the sum, two quotients and the scale.
		{"clipping", train.Config{ClipGlobalNorm: true}, map[graph.Kind]int{"L2Loss": 4, "Pack": 1, "Sum": 1, "Const": 6, "Mul": 6, "Sqrt": 1, "RealDiv": 2, "Minimum": 1, "Identity": 4}},
		// Two matrices and two biases.
		{"initializers", train.Config{InitOps: true}, map[graph.Kind]int{"Const": 2*3 + 2, "RandomUniform": 2, "Sub": 2, "Mul": 2, "Add": 2, "Assign": 4}},
		// The first layer's input gradient; cross entropy's second output.
		{"all gradients", train.Config{AllGradients: true}, map[graph.Kind]int{"MatMul": 1, "ZerosLike": 1}},
	} {
		got := count(c.cfg)
		for k, n := range got {
			if got[k] -= plain[k]; n == plain[k] {
				delete(got, k)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.more) {
			t.Errorf("%s: adds %v, want %v", c.name, got, c.more)
		}
	}
	init := derive(t, g, train.Config{InitOps: true})
	for i := graph.OpID(0); int(i) < init.NumOps(); i++ {
		o := init.Op(i)
		first, end := init.Outputs(i)
		if strings.HasPrefix(o.Name, "init/") && (o.FLOPs != 0 || o.Bytes != 0 || o.Resident != 0 || end != first+1 || init.Tensor(first).Bytes != 0) {
			t.Errorf("initializer %+v costs", o)
		}
	}
}

// TestScopes: names of the forward graph are not taken.
func TestScopes(t *testing.T) {
	n := newNet("scopes")
	w := n.variable("gradients/w", 2)
	v := n.variable("init", 2)
	n.op("L2Loss", []graph.TensorID{n.op("Mul", []graph.TensorID{w, v}, f32(2))}, f32())
	d := derive(t, n.build(t), train.Config{InitOps: true})
	for _, want := range []string{"gradients_1/Mul_grad/Mul", "optimizer/update_gradients/w/ApplyGradientDescent", "init_1/init/Assign"} {
		if !strings.Contains(text(d, 0), "\n"+want+" ") {
			t.Errorf("no op %s", want)
		}
	}
}
