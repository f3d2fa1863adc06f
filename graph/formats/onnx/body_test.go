package onnx

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/train"
)

// importModel imports a model made of graph fields, which must succeed.
func importModel(t *testing.T, data []byte) (*graph.Graph, *Summary) {
	t.Helper()
	g, sum, err := Import(data, "m.onnx", Default())
	if err != nil {
		t.Fatal(err)
	}
	return g, sum
}

// last returns the last op and the shape of its first output.
func last(g *graph.Graph) (*graph.Op, graph.Shape) {
	i := graph.OpID(g.NumOps() - 1)
	first, _ := g.Outputs(i)
	return g.Op(i), g.Tensor(first).Shape
}

func boolInput(name string, dims ...any) []byte {
	return bytesField(11, valueOf(name, elemBool, dims...))
}

// A node with branches costs what the dearer one costs, and reads what the
// branches read from outside.
func TestIf(t *testing.T) {
	cheap := graphAttr("then_branch", nodeOf("n", "Relu", list("x"), list("r")), outputOf("r"))
	dear := graphAttr("else_branch", nodeOf("n", "MatMul", list("x", "w"), list("r")), initOf(tensorOf("w", elemFloat, 3, 3)), outputOf("r"))
	g, sum := importModel(t, modelOf(nodeOf("choose", "If", list("c"), list("y"), cheap, dear), bytesField(11, concatBytes(textField(1, "c"), bytesField(2, bytesField(1, concatBytes(numberField(1, int64(elemBool)), bytesField(2, nil)))))),
		inputOf("x", 2, 3), outputOf("y")))
	o, shape := last(g)
	if want := (graph.GEMM{Batch: 1, M: 2, N: 3, K: 3}); o.GEMM != want || !shape.Equal(graph.Shape{2, 3}) {
		t.Errorf("product %+v to %v, want %+v", o.GEMM, shape, want)
	}
	if o.Params != 9 || o.Resident != 36 || sum.Params != 9 {
		t.Errorf("%d parameters in %v, want 9 in 36 B", o.Params, o.Resident)
	}
	if in := g.Inputs(graph.OpID(g.NumOps() - 1)); len(in) != 2 { // the condition and x
		t.Errorf("reads %v", in)
	}
	// reads x and w, writes the result
	if o.Bytes != 4*(6+9+6) {
		t.Errorf("moves %v, want 84 B", o.Bytes)
	}
}

// A loop costs its body times the number of iterations, and collects slices.
func TestLoop(t *testing.T) {
	body := graphAttr("body", bytesField(11, valueOf("i", elemInt64)), boolInput("c"), inputOf("h"),
		nodeOf("m", "MatMul", list("h", "w"), list("h2")), nodeOf("id", "Identity", list("c"), list("c2")), nodeOf("r", "Relu", list("h2"), list("o")),
		outputOf("c2"), outputOf("h2"), outputOf("o"))
	model := func(trips ...[]byte) []byte {
		return modelOf(append(trips, nodeOf("rnn", "Loop", list("n", "", "x"), list("h_n", "all"), body), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 3, 3)), outputOf("h_n"))...)
	}
	g, sum := importModel(t, model(initOf(concatBytes(tensorOf("n", elemInt64), bytesField(7, []byte{10})))))
	o, shape := last(g)
	if want := (graph.GEMM{Batch: 1, M: 2, N: 3, K: 3}); o.GEMM != want || o.Repeats != 10 || o.Kernels > 1 || !shape.Equal(graph.Shape{2, 3}) || len(sum.Notes) > 0 {
		t.Errorf("%+v to %v, notes %v; want 10 times %+v", o, shape, sum.Notes, want)
	}
	if o.FLOPs != 10*(o.GEMM.FLOPs()+6) { // and the Relu
		t.Errorf("%v", o.FLOPs)
	}
	if o.Bytes != 10*4*((6+9+6)+(6+6)) { // the weight in each iteration
		t.Errorf("moves %v", o.Bytes)
	}
	if _, end := g.Outputs(graph.OpID(g.NumOps() - 1)); !g.Tensor(end - 1).Shape.Equal(graph.Shape{10, 2, 3}) {
		t.Errorf("collects %v, want [10 2 3]", g.Tensor(end-1).Shape)
	}
	_, sum = importModel(t, model(bytesField(11, valueOf("n", elemInt64, 1))))
	if len(sum.Notes) != 1 || !strings.Contains(sum.Notes[0], "number of iterations is not known and taken as 1: a lower bound") {
		t.Errorf("notes %q", sum.Notes)
	}
}

// The arithmetic of a loop is of the type of its products, whatever is carried first.
func TestTypeOfBody(t *testing.T) {
	half := func(name string, dims ...any) []byte { return bytesField(11, valueOf(name, elemHalf, dims...)) }
	counter := func(name string) []byte { return bytesField(11, valueOf(name, elemInt64, 1)) }
	body := graphAttr("body", bytesField(11, valueOf("i", elemInt64)), boolInput("c"), counter("k"), half("h"),
		nodeOf("m", "MatMul", list("h", "w"), list("h2")), nodeOf("n", "Add", list("k", "k"), list("k2")), nodeOf("id", "Identity", list("c"), list("c2")),
		outputOf("c2"), outputOf("k2"), outputOf("h2"))
	trips := initOf(concatBytes(tensorOf("n", elemInt64), bytesField(7, []byte{10})))
	g, _ := importModel(t, modelOf(trips, nodeOf("rnn", "Loop", list("n", "", "k", "x"), list("k_n", "h_n"), body), counter("k"), half("x", 2, 8), initOf(tensorOf("w", elemHalf, 8, 8)), outputOf("k_n"), outputOf("h_n")))
	if o, _ := last(g); o.DType != graph.F16 || o.GEMM.IsZero() {
		t.Errorf("%v, %+v; want a product of f16", o.DType, o.GEMM)
	}
}

func TestScan(t *testing.T) {
	body := graphAttr("body", inputOf("h"), inputOf("e"), nodeOf("a", "Add", list("h", "e"), list("h2")), nodeOf("id", "Identity", list("h2"), list("o")), outputOf("h2"), outputOf("o"))
	g, sum := importModel(t, modelOf(nodeOf("s", "Scan", list("h0", "x"), list("hn", "all"), body, intAttr("num_scan_inputs", 1), intsAttr("scan_input_axes", 1), intsAttr("scan_output_axes", 1)),
		inputOf("h0", 4), inputOf("x", 4, 7), outputOf("all")))
	o, _ := last(g)
	_, end := g.Outputs(graph.OpID(g.NumOps() - 1))
	if all := g.Tensor(end - 1).Shape; !all.Equal(graph.Shape{4, 7}) || o.FLOPs != 7*4 {
		t.Errorf("collects %v with %v, want [4 7] with 28 FLOP", all, o.FLOPs)
	}
	if o.Repeats != 7 || o.Kernels > 1 || len(sum.Notes) > 0 {
		t.Errorf("%+v, notes %q; want 7 iterations", o, sum.Notes)
	}
}

// Loops in loops: the iterations are those of the loop with the most arithmetic, with the
// kernels of everything, and products outside of it are spread over them.
func TestNestedLoops(t *testing.T) {
	count := func(name string, n byte) []byte {
		return initOf(concatBytes(tensorOf(name, elemInt64), bytesField(7, []byte{n})))
	}
	head := concatBytes(bytesField(11, valueOf("i", elemInt64)), boolInput("c"), nodeOf("id", "Identity", list("c"), list("c2")))
	body := func(nodes ...[]byte) []byte {
		return graphAttr("body", append([][]byte{head, inputOf("h")}, append(nodes, outputOf("c2"), outputOf("h2"))...)...)
	}
	inner := nodeOf("in", "Loop", list("five", "", "h1"), list("h2"), graphAttr("body", bytesField(11, valueOf("j", elemInt64)), boolInput("d"), inputOf("k"),
		nodeOf("m", "MatMul", list("k", "w"), list("k2")), nodeOf("s", "Softmax", list("k2"), list("k3")), nodeOf("jd", "Identity", list("d"), list("d2")), outputOf("d2"), outputOf("k3")))
	for _, c := range []struct {
		name  string
		outer []byte
		want  graph.Op
	}{
		// 5 of [2,3]x[3,3] and one outside, 36 operations each: 6/5 of the product, which
		// rounds to no whole dimension, and 12 kernels in 5.
		{"a product outside", body(nodeOf("o", "MatMul", list("h", "w"), list("h1")), inner), graph.Op{Repeats: 50, Kernels: 3, GEMM: graph.GEMM{Batch: 1, M: 2, N: 3, K: 3}}},
		{"none outside", body(nodeOf("o", "Relu", list("h"), list("h1")), inner), graph.Op{Repeats: 50, Kernels: 2, GEMM: graph.GEMM{Batch: 1, M: 2, N: 3, K: 3}}},
	} {
		g, _ := importModel(t, modelOf(count("ten", 10), count("five", 5), nodeOf("out", "Loop", list("ten", "", "x"), list("y"), c.outer), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 3, 3)), outputOf("y")))
		o, _ := last(g)
		if o.Repeats != c.want.Repeats || o.Kernels != c.want.Kernels || o.GEMM != c.want.GEMM {
			t.Errorf("%s: %+v, want %+v", c.name, o, c.want)
		}
	}
}

// A call of a model-local function stands in the graph as the nodes of its body; its
// attributes, or the function's defaults, reach them.
func TestFunction(t *testing.T) {
	ref := concatBytes(textField(1, "transB"), textField(21, "flip"))
	fn := functionOf("Dense", list("u", "w", "b"), list("v"), nodeOf("p", "Gemm", list("u", "w", "b"), list("q"), ref), nodeOf("r", "Relu", list("q"), list("v")))
	g, sum := importModel(t, concatBytes(modelOf(nodeOf("d", "Dense", list("x", "w"), list("y"), intAttr("flip", 1)), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 5, 3)), outputOf("y")), fn))
	if got, want := opNames(g), list("x", "w", "d/p", "d/r"); !slices.Equal(got, want) {
		t.Fatalf("ops %q, want %q", got, want)
	}
	o := g.Op(2)
	if want := (graph.GEMM{Batch: 1, M: 2, N: 5, K: 3}); o.Kind != "Gemm" || o.GEMM != want || o.Module != "d" {
		t.Errorf("%+v, want the product %v of module d", o, want)
	}
	if g.Params() != 15 || sum.Nodes != 2 || sum.Inlined != 1 {
		t.Errorf("%d parameters, %d nodes, %d calls; want 15, 2, 1", g.Params(), sum.Nodes, sum.Inlined)
	}
	// Training: what was opaque has a gradient and an update now.
	trained, err := train.Derive(g, train.Default())
	if err != nil {
		t.Fatal(err)
	}
	var updates int
	for i := range graph.OpID(trained.NumOps()) {
		if o := trained.Op(i); o.Kind.Class() == graph.ClassUpdate && o.Kind != "Assign" {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("%d updates, want 1", updates)
	}
}

// Functions that call functions, twice each, with an attribute handed on, an input left
// out, an output that is an input, and a subgraph that reads a tensor of the body.
func TestNestedFunctions(t *testing.T) {
	ref := func(name, of string) []byte { return concatBytes(textField(1, name), textField(21, of)) }
	inner := functionOf("Inner", list("u", "w", "b"), list("v"), nodeOf("p", "Gemm", list("u", "w", "b"), list("v"), ref("transB", "flip")))
	branch := func(out string) []byte {
		return graphAttr(out, nodeOf("", "Relu", list("t"), list("s")), outputOf("s"))
	}
	outer := functionOf("Outer", list("u", "w", "c"), list("v", "same"), nodeOf("first", "Inner", list("u", "w"), list("t"), ref("flip", "turn")),
		nodeOf("", "If", list("c"), list("s"), branch("then_branch"), branch("else_branch")), nodeOf("second", "Inner", list("s", "w"), list("v"), ref("flip", "turn")),
		nodeOf("i", "Identity", list("u"), list("same")))
	g, sum := importModel(t, concatBytes(modelOf(nodeOf("a", "Outer", list("x", "w", "c"), list("m", "e"), intAttr("turn", 1)), nodeOf("b", "Outer", list("m", "w", "c"), list("y", ""), intAttr("turn", 0)),
		inputOf("x", 2, 3), boolInput("c", 1), initOf(tensorOf("w", elemFloat, 3, 3)), outputOf("y"), outputOf("e")), outer, inner))
	want := list("x", "c", "w", "a/first/p", "a/If_1", "a/second/p", "a/i", "b/first/p", "b/If_1", "b/second/p", "b/i")
	if got := opNames(g); !slices.Equal(got, want) || sum.Inlined != 6 || g.Params() != 9 {
		t.Errorf("ops %q, want %q; %d calls, %d parameters", got, want, sum.Inlined, g.Params())
	}
}
