package train_test

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/train"
	"placer/units"
)

// half is x[4,3] w -> f32 -> + b, with w of bf16 and b of f32.
func half(t testing.TB) *graph.Graph {
	n := newNet("half")
	x := n.op("Placeholder", nil, tensor(graph.BF16, 4, 3))
	m := graph.GEMM{Batch: 1, M: 4, N: 5, K: 3}
	y := n.add(graph.Op{Kind: "MatMul", DType: graph.BF16, GEMM: m, FLOPs: m.FLOPs()}, []graph.TensorID{x, n.variableOf(graph.BF16, "w", 3, 5)}, tensor(graph.BF16, 4, 5))
	y = n.op("Cast", []graph.TensorID{y}, f32(4, 5))
	y = n.op("BiasAdd", []graph.TensorID{y, n.variable("b", 5)}, f32(4, 5))
	n.op("Mean", []graph.TensorID{y, n.op("Const", nil, i32(2))}, f32())
	return n.build(t)
}

// updateOf returns the op of kind in the update of variable name.
func updateOf(t *testing.T, g *graph.Graph, name string, kind graph.Kind) graph.OpID {
	t.Helper()
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind == kind && strings.HasPrefix(o.Name, "optimizer/update_"+name+"/") {
			return i
		}
	}
	t.Fatalf("no %s of %s", kind, name)
	return graph.None
}

// linesOf returns the lines of text that are about the update of variable name.
func linesOf(g *graph.Graph, name string) (lines []string) {
	for line := range strings.Lines(text(g, 0)) {
		if strings.HasPrefix(line, "optimizer/update_"+name+"/") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestMasterWeights: bytes a parameter of 16 bits and what its update moves, counted by
// hand. Adam's 16 bytes are those of ZeRO (Rajbhandari et al., SC 2020, section 3.1): weight
// and gradient 2 each, master copy and slots 4 each.
func TestMasterWeights(t *testing.T) {
	g := half(t)
	const params = 15
	for _, c := range []struct {
		opt      train.Optimizer
		kind     graph.Kind
		held     units.Bytes // a parameter, with its gradient
		bytes    units.Bytes // of the update, a parameter: gradient 2, weight 2, all else 4 read and 4 written
		flops    units.FLOPs // of the update, a parameter: the rule's and two conversions
		resident units.Bytes // beside the variables
	}{
		{train.SGD, "ApplyGradientDescent", 2 + 2 + 4, 2 + 2 + 8, 2 + 2, 0},
		{train.Momentum, "ApplyMomentum", 2 + 2 + 4 + 4, 2 + 2 + 16, 6 + 2, 0},
		{train.Adam, "ApplyAdam", 2 + 2 + 4 + 4 + 4, 2 + 2 + 24, 12 + 2, 8}, // the powers of the decay rates
	} {
		d := derive(t, g, train.Config{Optimizer: c.opt, MasterWeights: true})
		at := updateOf(t, d, "w", c.kind)
		o, in := d.Op(at), d.Inputs(at)
		if o.Bytes != params*c.bytes || o.FLOPs != params*c.flops || o.DType != graph.F32 {
			t.Errorf("%v: the update moves %d bytes with %g FLOPs in %v, want %d, %g and f32", c.opt, o.Bytes, float64(o.FLOPs), o.DType, params*c.bytes, float64(params*c.flops))
		}
		w, master := d.Op(d.Tensor(in[0]).Producer), d.Op(d.Tensor(in[1]).Producer)
		if w.Name != "w" || master.Name != "optimizer/update_w/master" || master.Params != 0 || d.Tensor(in[1]).DType != graph.F32 {
			t.Errorf("%v: updates %s by %s of %v", c.opt, w.Name, master.Name, d.Tensor(in[1]).DType)
		}
		if out, _ := d.Outputs(at); d.Tensor(out).DType != graph.BF16 || !d.Tensor(out).Resident {
			t.Errorf("%v: the update gives %+v", c.opt, d.Tensor(out))
		}
		var held units.Bytes
		reads := 0
		for i := range graph.OpID(d.NumOps()) {
			if x := d.Op(i); x.Group == o.Group {
				held += x.Resident
				if x.Name == "optimizer/update_w/master/read" {
					reads++
				}
			}
		}
		for _, x := range in[2:] {
			if d.Tensor(x).DType == graph.BF16 {
				held += d.Tensor(x).Bytes // the gradient
			}
		}
		if held != params*c.held+c.resident || reads != 1 {
			t.Errorf("%v: %d bytes are held with %d reads of the master copy, want %d and 1", c.opt, held, reads, params*c.held+c.resident)
		}
		if without := derive(t, g, train.Config{Optimizer: c.opt}); !slices.Equal(linesOf(d, "b"), linesOf(without, "b")) {
			t.Errorf("%v: b is of f32, its update became\n%q, was\n%q", c.opt, linesOf(d, "b"), linesOf(without, "b"))
		}
	}
	for _, cfg := range []train.Config{train.Default(), {Optimizer: train.Momentum, ClipGlobalNorm: true}} {
		g := mlp(t)
		want := derive(t, g, cfg).Hash()
		if cfg.MasterWeights = true; derive(t, g, cfg).Hash() != want {
			t.Errorf("%v: the step of a model of f32 is another", cfg.Optimizer)
		}
	}
	if train.Narrow(mlp(t)) || !train.Narrow(g) {
		t.Error("Narrow: want no variable of 16 bits in the perceptron of f32, one in the other")
	}
}

// TestMasterWeightsOfRows: a sparse gradient's 4 rows of 3 are converted once, the table of
// 1,000 rows and its state are in f32, and what is written of the variable is in 16 bits.
func TestMasterWeightsOfRows(t *testing.T) {
	n := newNet("table")
	table := n.variableOf(graph.F16, "table", 1000, 3)
	x := n.op("GatherV2", []graph.TensorID{table, n.op("Placeholder", nil, i32(4)), n.op("Const", nil, i32())}, tensor(graph.F16, 4, 3))
	n.op("Mean", []graph.TensorID{n.op("Cast", []graph.TensorID{x}, f32(4, 3)), n.op("Const", nil, i32(2))}, f32())
	g := n.build(t)
	const rows, all = 4 * 3, 1000 * 3
	for _, c := range []struct {
		opt   train.Optimizer
		kind  graph.Kind
		bytes units.Bytes // gradient in f32, each other read and written in f32, result in f16
		flops units.FLOPs // the rule's, and the result's conversion
		slots units.Bytes
	}{
		{train.SGD, "ScatterSub", rows * (4 + 8 + 2), rows * 1, 0},
		{train.Momentum, "SparseApplyMomentum", rows * (4 + 16 + 2), rows * (6 + 1), 4 * all},
		{train.Adam, "AssignSub", all * (4 + 8 + 2), all * (2 + 1), 8*all + 8},
	} {
		d := derive(t, g, train.Config{Optimizer: c.opt, MasterWeights: true})
		at := updateOf(t, d, "table", c.kind)
		if o := d.Op(at); o.Bytes != c.bytes || o.FLOPs != c.flops {
			t.Errorf("%v: the update moves %d bytes with %g FLOPs, want %d and %g", c.opt, o.Bytes, float64(o.FLOPs), c.bytes, float64(c.flops))
		}
		if cast := d.Op(updateOf(t, d, "table", "Cast")); cast.Bytes != rows*(2+4) || cast.FLOPs != rows || kindsOf(d, g.NumOps())["Cast"] != kindsOf(derive(t, g, train.Config{Optimizer: c.opt}), g.NumOps())["Cast"]+1 {
			t.Errorf("%v: the rows' conversion moves %d bytes", c.opt, cast.Bytes)
		}
		if want := g.Resident() + 4*all + c.slots; variablesIn(d) != want {
			t.Errorf("%v: %d bytes are held, want %d", c.opt, variablesIn(d), want)
		}
		if c.opt == train.Adam {
			if o := d.Op(updateOf(t, d, "table", "ScatterAdd")); o.Bytes != 3*4*rows {
				t.Errorf("a slot's rows move %d bytes, want %d", o.Bytes, 3*4*rows)
			}
		}
	}
}

// variablesIn returns what the variables of g hold.
func variablesIn(g *graph.Graph) (b units.Bytes) {
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind.Class() == graph.ClassVariable {
			b += o.Resident
		}
	}
	return b
}
