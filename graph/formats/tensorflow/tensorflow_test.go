package tensorflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"placer/graph"
	"placer/graph/formats/formatstest"
	"placer/units"
)

// node writes a node of a text GraphDef; attrs are pairs of key and value.
func node(name, op string, inputs []string, attrs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node {\n name: %q\n op: %q\n", name, op)
	for _, in := range inputs {
		fmt.Fprintf(&b, " input: %q\n", in)
	}
	for i := 0; i+1 < len(attrs); i += 2 {
		fmt.Fprintf(&b, " attr { key: %q value { %s } }\n", attrs[i], attrs[i+1])
	}
	b.WriteString("}\n")
	return b.String()
}

func dims(n ...int) string {
	s := "shape {"
	for _, d := range n {
		s += fmt.Sprintf(" dim { size: %d }", d)
	}
	return s + " }"
}

const float, ints = "type: DT_FLOAT", "type: DT_INT32"

// conv is a convolution with its gradients, a variable that has a colocated update, and a
// reshape to a computed shape.
var conv = node("x", "Placeholder", nil, "dtype", float, "shape", dims(-1, 8, 8, 3)) +
	node("net/w", "VarHandleOp", nil, "dtype", float, "shape", dims(3, 3, 3, 16)) +
	node("net/w/Read", "ReadVariableOp", []string{"net/w"}, "dtype", float) +
	node("net/conv", "Conv2D", []string{"x", "net/w/Read"}, "T", float, "strides", "list { i: 1 i: 2 i: 2 i: 1 }", "padding", `s: "SAME"`) +
	node("sizes", "ShapeN", []string{"x", "net/w/Read"}, "T", float, "N", "i: 2") +
	node("gradients/net/conv_grad/filter", "Conv2DBackpropFilter", []string{"x", "sizes:1", "net/conv"}, "T", float) +
	node("minus", "Const", nil, "dtype", ints, "value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: -1 }") +
	node("batch", "StridedSlice", []string{"sizes", "zero1", "one1", "one1"}, "T", ints, "shrink_axis_mask", "i: 1") +
	node("zero1", "Const", nil, "dtype", ints, "value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 }") +
	node("one1", "Const", nil, "dtype", ints, "value", `tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } tensor_content: "\001\000\000\000" }`) +
	node("flat", "Pack", []string{"batch", "minus"}, "T", ints, "N", "i: 2") +
	node("net/flat", "Reshape", []string{"net/conv", "flat"}, "T", float) +
	node("lr", "Const", []string{"^net/flat"}, "dtype", float, "value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.1 }") +
	node("update", "ResourceApplyGradientDescent", []string{"net/w", "lr", "gradients/net/conv_grad/filter"}, "T", float, "_class", `list { s: "loc:@net/w" }`)

func find(t *testing.T, g *graph.Graph, name string) (graph.OpID, *graph.Op) {
	t.Helper()
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Name == name {
			return i, g.Op(i)
		}
	}
	t.Fatalf("no op %s", name)
	return 0, nil
}

func TestShapes(t *testing.T) {
	x, err := Import([]byte(conv), "dir/conv.pbtxt", map[string]int64{"batch": 4})
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	if x.Nodes != 14 || x.Edges != 20 || g.Name() != "conv" || g.NumControl() != 1 || g.Params() != 432 {
		t.Errorf("%d nodes, %d edges, %d control edges, %d parameters", x.Nodes, x.Edges, g.NumControl(), g.Params())
	}
	_, c := find(t, g, "net/conv")
	if want := (graph.GEMM{Batch: 1, M: 4 * 4 * 4, N: 16, K: 27}); c.GEMM != want || c.Module != "net" {
		t.Errorf("convolution %+v", c)
	}
	_, c = find(t, g, "gradients/net/conv_grad/filter")
	if want := (graph.GEMM{Batch: 1, M: 27, N: 16, K: 4 * 4 * 4}); c.GEMM != want || c.Phase != graph.Backward || c.Module != "net" {
		t.Errorf("filter's gradient %+v", c)
	}
	i, _ := find(t, g, "net/flat")
	first, _ := g.Outputs(i)
	if s := g.Tensor(first).Shape; !s.Equal(graph.Shape{4, 256}) {
		t.Errorf("reshaped to %v", s)
	}
	_, v := find(t, g, "net/w")
	_, u := find(t, g, "update")
	_, r := find(t, g, "net/w/Read")
	if v.Group == 0 || v.Group != u.Group || v.Group != r.Group || c.Group != 0 || u.Phase != graph.Update || u.Kind != "ApplyGradientDescent" {
		t.Errorf("groups of the variable %d, its update %d, its read %d", v.Group, u.Group, r.Group)
	}
	if len(x.Dims) != 1 || x.UnknownDims != nil {
		t.Errorf("open: %v", x.Dims)
	}
}

// holder is a placeholder of that shape.
func holder(name string, n ...int) string {
	return node(name, "Placeholder", nil, "dtype", float, "shape", dims(n...))
}

// sizes is a constant of integers.
func sizes(name string, n ...int) string {
	values := ""
	for _, x := range n {
		values += fmt.Sprintf(" int_val: %d", x)
	}
	return node(name, "Const", nil, "dtype", ints, "value", fmt.Sprintf("tensor { dtype: DT_INT32 tensor_shape { dim { size: %d } } %s }", len(n), values))
}

// Operators whose products need an equation, a third dimension, channels one by one or
// layers of a recurrent net.
// dense is a product of [batch,seq,3] and [3,5] as tf.tensordot writes it, which computes the
// rows of a matrix from the shape: dimensions are gathered and multiplied.
func dense() string {
	list := func(name string, n ...int) string {
		values := ""
		for _, x := range n {
			values += fmt.Sprintf(" int_val: %d", x)
		}
		return node(name, "Const", nil, "dtype", ints, "value", fmt.Sprintf("tensor { dtype: DT_INT32 tensor_shape { dim { size: %d } }%s }", len(n), values))
	}
	zero := node("zero", "Const", nil, "dtype", ints, "value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }")
	return node("x", "Placeholder", nil, "dtype", float, "shape", dims(-1, 7, 3)) + node("w", "VariableV2", nil, "dtype", float, "shape", dims(3, 5)) +
		list("free", 0, 1) + list("last", 2) + list("first", 0) + list("columns", 5) + zero +
		node("shape", "Shape", []string{"x"}, "T", float) +
		node("kept", "GatherV2", []string{"shape", "free", "zero"}, "Tparams", ints) +
		node("summed", "GatherV2", []string{"shape", "last", "zero"}, "Tparams", ints) +
		node("rows", "Prod", []string{"kept", "first"}, "T", ints) +
		node("depth", "Prod", []string{"summed", "first"}, "T", ints) +
		node("matrix", "Pack", []string{"rows", "depth"}, "T", ints, "N", "i: 2") +
		node("flat", "Reshape", []string{"x", "matrix"}, "T", float) +
		node("product", "MatMul", []string{"flat", "w"}, "T", float) +
		node("back", "ConcatV2", []string{"kept", "columns", "zero"}, "T", ints, "N", "i: 2") +
		node("y", "Reshape", []string{"product", "back"}, "T", float)
}

func TestShapesThatAreComputed(t *testing.T) {
	x, err := Import([]byte(dense()), "dense.pbtxt", map[string]int64{"batch": 4})
	if err != nil {
		t.Fatal(err)
	}
	g := x.Graph
	if _, o := find(t, g, "product"); o.GEMM != (graph.GEMM{Batch: 1, M: 28, N: 5, K: 3}) {
		t.Errorf("the product is %+v", o.GEMM)
	}
	i, _ := find(t, g, "y")
	if k, _ := g.Outputs(i); g.Tensor(k).Bytes != 4*7*5*4 {
		t.Errorf("the result has %v, want 560 B", g.Tensor(k).Bytes)
	}
}

func TestProducts(t *testing.T) {
	heads := holder("a", 2, 9, 64) + holder("w", 64, 4, 16)
	lstm := holder("a", 10, 8, 32) + holder("h", 2, 8, 16) + holder("p", 1000)
	for _, c := range []struct {
		name, file string
		gemm       graph.GEMM
		flops      float64
		out        graph.Shape
	}{
		{"heads of attention", heads + node("y", "Einsum", []string{"a", "w"}, "T", float, "N", "i: 2", "equation", `s: "abc,cde->abde"`),
			graph.GEMM{Batch: 1, M: 18, N: 64, K: 64}, 2 * 18 * 64 * 64, graph.Shape{2, 9, 4, 16}},
		{"a dense layer", holder("a", 2, 9, 64) + holder("w", 64, 32) + node("y", "Einsum", []string{"a", "w"}, "T", float, "equation", `s: "...x,xy->...y"`),
			graph.GEMM{Batch: 1, M: 18, N: 32, K: 64}, 2 * 18 * 32 * 64, graph.Shape{2, 9, 32}},
		{"a sum of elements", holder("a", 3, 5) + holder("w", 3, 5) + node("y", "Einsum", []string{"a", "w"}, "T", float, "equation", `s: "ij,ij->ij"`),
			graph.GEMM{}, 30, graph.Shape{3, 5}},
		{"three dimensions", holder("a", 2, 8, 8, 8, 3) + holder("w", 3, 3, 3, 3, 16) + node("y", "Conv3D", []string{"a", "w"}, "T", float, "strides", "list { i: 1 i: 2 i: 2 i: 2 i: 1 }", "padding", `s: "SAME"`),
			graph.GEMM{Batch: 1, M: 128, N: 16, K: 81}, 2 * 128 * 16 * 81, graph.Shape{2, 4, 4, 4, 16}},
		{"their input's gradient", sizes("a", 2, 8, 8, 8, 3) + holder("w", 3, 3, 3, 3, 16) + holder("d", 2, 4, 4, 4, 16) + node("y", "Conv3DBackpropInputV2", []string{"a", "w", "d"}, "T", float),
			graph.GEMM{Batch: 1, M: 128, N: 81, K: 16}, 2 * 128 * 16 * 81, graph.Shape{2, 8, 8, 8, 3}},
		{"their filter's gradient", holder("a", 2, 8, 8, 8, 3) + sizes("w", 3, 3, 3, 3, 16) + holder("d", 2, 4, 4, 4, 16) + node("y", "Conv3DBackpropFilterV2", []string{"a", "w", "d"}, "T", float),
			graph.GEMM{Batch: 1, M: 81, N: 16, K: 128}, 2 * 128 * 16 * 81, graph.Shape{3, 3, 3, 3, 16}},
		{"a depthwise input's gradient", sizes("a", 2, 8, 8, 6) + holder("w", 3, 3, 6, 2) + holder("d", 2, 8, 8, 12) + node("y", "DepthwiseConv2dNativeBackpropInput", []string{"a", "w", "d"}, "T", float),
			graph.GEMM{Batch: 6, M: 128, N: 9, K: 2}, 2 * 6 * 128 * 9 * 2, graph.Shape{2, 8, 8, 6}},
		{"a depthwise filter's gradient", holder("a", 2, 8, 8, 6) + sizes("w", 3, 3, 6, 2) + holder("d", 2, 8, 8, 12) + node("y", "DepthwiseConv2dNativeBackpropFilter", []string{"a", "w", "d"}, "T", float),
			graph.GEMM{Batch: 6, M: 9, N: 2, K: 128}, 2 * 6 * 128 * 9 * 2, graph.Shape{3, 3, 6, 2}},
		{"two layers of an LSTM", lstm + node("y", "CudnnRNNV3", []string{"a", "h", "h", "p"}, "T", float, "rnn_mode", `s: "lstm"`),
			graph.GEMM{Batch: 1, M: 20, N: 64, K: 16}, 2 * 10 * 8 * 64 * (48 + 32), graph.Shape{10, 8, 16}},
		{"both directions of a GRU", lstm + node("y", "CudnnRNN", []string{"a", "h", "h", "p"}, "T", float, "rnn_mode", `s: "gru"`, "direction", `s: "bidirectional"`),
			graph.GEMM{Batch: 2, M: 24, N: 48, K: 16}, 2 * 20 * 8 * 48 * 48, graph.Shape{10, 8, 32}},
		{"an LSTM's gradients", lstm + node("y", "CudnnRNNBackprop", []string{"a", "h", "h", "p"}, "T", float, "rnn_mode", `s: "lstm"`),
			graph.GEMM{Batch: 2, M: 20, N: 64, K: 16}, 4 * 10 * 8 * 64 * (48 + 32), graph.Shape{10, 8, 32}},
	} {
		x, err := Import([]byte(c.file), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		i, o := find(t, x.Graph, "y")
		first, _ := x.Graph.Outputs(i)
		if s := x.Graph.Tensor(first).Shape; o.GEMM != c.gemm || float64(o.FLOPs) != c.flops || !s.Equal(c.out) {
			t.Errorf("%s: %+v, %v FLOPs, shape %v", c.name, o.GEMM, o.FLOPs, s)
		}
	}
}

// Products whose sizes the file does not tell are counted in a note.
func TestUnpriced(t *testing.T) {
	open := node("a", "Placeholder", nil, "dtype", float) + holder("w", 64, 32)
	x, err := Import([]byte(open+node("y", "Einsum", []string{"a", "w"}, "T", float, "equation", `s: "ax,xy->ay"`)+node("z", "MatMul", []string{"a", "w"}, "T", float)+node("u", "MatMul", []string{"z", "w"}, "T", float)), "f", nil)
	if want := "products of unknown size cost their bytes alone: 1 Einsum, 2 MatMul"; err != nil || !slices.Contains(x.Notes, want) {
		t.Errorf("%q, %v, want %s", x.Notes, err, want)
	}
}

// Text, binary, SavedModel, MetaGraphDef and JSON of one graph are one graph.
func TestForms(t *testing.T) {
	f, err := decode([]byte(conv))
	if err != nil {
		t.Fatal(err)
	}
	def, err := proto.Marshal(f.def)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := protojson.Marshal(f.def)
	if err != nil {
		t.Fatal(err)
	}
	str := func(b []byte, n protowire.Number, s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	meta := str(str(nil, 1, []byte{}), 2, def)
	saved := str(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1), 2, meta)
	want, err := Import([]byte(conv), "g", nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"GraphDef": def, "MetaGraphDef": meta, "SavedModel": saved, "model.json": []byte(`{"format": "graph-model", "modelTopology": ` + string(topology) + `}`),
		"text MetaGraphDef": []byte("meta_info_def { }\ngraph_def {\n" + conv + "}\n")} {
		x, err := Import(data, "g", nil)
		if err != nil || !Sniff(data) || x.Graph.Hash() != want.Graph.Hash() {
			t.Errorf("%s: recognised %v, %v", what, Sniff(data), err)
		}
	}
}

var loops = node("start", "Const", nil, "dtype", ints, "value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }") +
	node("x", "Placeholder", nil, "dtype", float, "shape", dims(2, 4)) +
	node("w", "Placeholder", nil, "dtype", float, "shape", dims(4, 4)) +
	node("Enter", "Enter", []string{"x"}, "T", float, "frame_name", `s: "frame"`) +
	node("EnterW", "Enter", []string{"w"}, "T", float, "frame_name", `s: "frame"`) +
	node("Merge", "Merge", []string{"Enter", "Next"}, "T", float) +
	node("mul", "MatMul", []string{"Merge", "EnterW"}, "T", float) +
	node("Next", "NextIteration", []string{"mul"}, "T", float) +
	node("Exit", "Exit", []string{"Merge"}, "T", float) +
	node("after", "Relu", []string{"Exit"}, "T", float) +
	node("call", "PartitionedCall", []string{"after"}, "f", `func { name: "twice" }`, "Tout", "list { type: DT_FLOAT }") +
	node("while", "While", []string{"call"}, "cond", `func { name: "go" }`, "body", `func { name: "twice" }`, "T", "list { type: DT_FLOAT }") +
	"library {\n function {\n signature { name: \"twice\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"r\" type: DT_FLOAT } }\n" +
	strings.ReplaceAll(node("sum", "AddV2", []string{"a", "a"}, "T", float), "node {", "node_def {") + " ret { key: \"r\" value: \"sum:z:0\" }\n }\n" +
	"function {\n signature { name: \"go\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"r\" type: DT_BOOL } }\n" +
	strings.ReplaceAll(node("ok", "IsFinite", []string{"a"}, "T", float), "node {", "node_def {") + " ret { key: \"r\" value: \"ok:y:0\" }\n }\n}\n"

// A loop is its body times a trip count that is stated, on one device; a call is inlined.
func TestLoops(t *testing.T) {
	if _, err := Import([]byte(loops), "f", nil); err == nil || err.Error() != "f: node 3 (Enter): a loop that runs an unknown number of times: state it by --dim frame=N" {
		t.Error(err)
	}
	x, err := Import([]byte(loops), "f", map[string]int64{"frame": 5, "while": 3, "other": 1})
	if err != nil {
		t.Fatal(err)
	}
	_, m := find(t, x.Graph, "mul")
	_, after := find(t, x.Graph, "after")
	_, body := find(t, x.Graph, "while/sum")
	_, called := find(t, x.Graph, "call/sum")
	if _, w := find(t, x.Graph, "EnterW"); w.Group != m.Group {
		t.Error("two ops of one loop are in two groups")
	}
	if m.GEMM != (graph.GEMM{Batch: 1, M: 2, N: 4, K: 4}) || m.Repeats != 5 || m.FLOPs != 5*m.GEMM.FLOPs() || m.Bytes != 5*4*(8+16+8) || m.Group == 0 || after.Group != 0 || after.Repeats > 1 {
		t.Errorf("in the loop %+v, after it %+v", m, after)
	}
	if body.FLOPs != 3*8 || body.Repeats != 3 || called.Repeats > 1 || body.Group == 0 || body.Group == m.Group || called.FLOPs != 8 || called.Group != 0 {
		t.Errorf("functional loop %+v, call %+v", body, called)
	}
	if !slices.Equal(x.UnknownDims, []string{"other"}) {
		t.Errorf("unknown: %v", x.UnknownDims)
	}
}

// function writes a function of one argument a and one result, the first output of node r.
func function(name, nodes string) string {
	return fmt.Sprintf("function {\n signature { name: %q input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"out\" type: DT_FLOAT } }\n%s ret { key: \"out\" value: \"r:0\" }\n }\n", name, strings.ReplaceAll(nodes, "node {", "node_def {"))
}

// Of a conditional's branches a step runs one, and the dearest counts; within it, too.
func TestBranches(t *testing.T) {
	choose := func(name, op, in string) string {
		return node(name, op, []string{"c", in}, "then_branch", `func { name: "cheap" }`, "else_branch", `func { name: "dear" }`, "branches", `list { func { name: "cheap" } func { name: "dear" } }`)
	}
	inner := strings.Replace(choose("r", "If", "a"), `input: "c"`, `input: "a"`, 1)
	file := holder("c") + holder("x", 4, 8) + choose("if", "If", "x") + choose("case", "StatelessCase", "x") +
		node("two", "If", []string{"c", "x"}, "then_branch", `func { name: "nested" }`, "else_branch", `func { name: "cheap" }`) +
		"library {\n" + function("cheap", node("r", "Relu", []string{"a"}, "T", float)) + function("dear", node("e", "Exp", []string{"a"}, "T", float)+node("r", "Exp", []string{"e:0"}, "T", float)) +
		function("nested", inner) + "}\n"
	x, err := Import([]byte(file), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for i := range x.Graph.NumOps() {
		names = append(names, x.Graph.Op(graph.OpID(i)).Name)
	}
	if want := []string{"c", "x", "if/e", "if/r", "case/e", "case/r", "two/r/e", "two/r/r"}; !slices.Equal(names, want) {
		t.Errorf("ops %q, want %q", names, want)
	}
	if want := "4 conditionals run the branch that costs most"; !slices.Contains(x.Notes, want) {
		t.Errorf("notes %q, want %s", x.Notes, want)
	}
	if want := units.FLOPs(3 * 2 * 4 * 32); x.Graph.FLOPs() != want {
		t.Errorf("%v FLOPs, want %v", x.Graph.FLOPs(), want)
	}
}

// Types of fewer bits than a byte are packed; quantized and 8-bit ones have their sizes.
func TestTypeSizes(t *testing.T) {
	for name, want := range map[string]struct {
		dtype graph.DType
		bytes units.Bytes
	}{"DT_FLOAT8_E5M2": {graph.F8, 9}, "DT_FLOAT8_E4M3FN": {graph.F8, 9}, "DT_INT4": {graph.I8, 5}, "DT_UINT4": {graph.I8, 5}, "DT_QINT16": {graph.I32, 18}, "DT_QUINT16": {graph.I32, 18}, "DT_QINT32": {graph.I32, 36}} {
		x, err := Import([]byte(node("a", "Placeholder", nil, "dtype", "type: "+name, "shape", dims(3, 3))), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o := x.Graph.Tensor(0); o.DType != want.dtype || o.Bytes != want.bytes {
			t.Errorf("%s: %v of %d bytes, want %v of %d", name, o.DType, o.Bytes, want.dtype, want.bytes)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		node("a", "Relu", []string{"b"}):                                             "f: node 0 (a): input 0: no node is called b",
		node("a", "Relu", []string{"a"}):                                             "f: node 0 (a) is on a cycle that no NextIteration closes",
		node("a", "Const", nil, "dtype", float) + node("a", "Relu", nil):             "f: node 1 (a): node 0 has the same name",
		node("a", "Const", nil, "dtype", float) + node("b", "Relu", []string{"a:7"}): "f: node 1 (b): input 0 is output 7 of a, which has 1",
		node("a", "PartitionedCall", nil, "f", `func { name: "g" }`):                 "f: node 0 (a): calls g, which the library does not have",
		node("a", "Placeholder", nil, "dtype", float, "shape", dims(1<<40, 1<<40)):   "f: node 0 (a): shape [1099511627776 1099511627776] is too large",
	} {
		if _, err := Import([]byte(text), "f", nil); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzImport: no input panics, and every error is one line that begins with the file's
// name.
func FuzzImport(f *testing.F) {
	for _, text := range []string{conv, loops, loopOver(), listing(), listing("_noinline", "b: true")} {
		f.Add([]byte(text))
		x, err := decode([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		def, err := proto.Marshal(x.def)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(def)
	}
	f.Add([]byte(`{"modelTopology": {"node": [{"name": "a", "op": "Relu"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !Sniff(data) {
			return
		}
		x, err := Import(data, "f", map[string]int64{"frame": 2, "while": 2})
		if err == nil && x.Graph == nil || err != nil && !formatstest.Located(err, "f") {
			t.Errorf("%q", err)
		}
	})
}

// A placed graph has devices, and chains in the order of the schedule.
func TestPlace(t *testing.T) {
	var schedule []Placed
	x, err := Import([]byte(conv), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.Graph.NumOps() {
		schedule = append(schedule, Placed{x.Graph.Op(graph.OpID(i)).Name, fmt.Sprintf("/device:CPU:%d", i%2)})
	}
	data, err := Place([]byte(conv), "f", schedule)
	if err != nil {
		t.Fatal(err)
	}
	placed, err := Import(data, "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := Devices(data, "f")
	if err != nil || len(devices) != 14 || devices[schedule[3].Name] != "/device:CPU:1" {
		t.Errorf("%d devices, %v", len(devices), err)
	}
	if c := placed.Graph.NumControl(); c < 9 || c > 1+12 {
		t.Errorf("%d control edges", c)
	}
	if _, err := Place([]byte(loops), "f", nil); err == nil || !strings.Contains(err.Error(), "node 7 (Next): the nodes of a loop have no order") {
		t.Error(err)
	}
	if _, err := Place([]byte(conv), "f", []Placed{{"call/sum", "/device:CPU:0"}}); err == nil || err.Error() != "f: call/sum is in a function: only nodes of the main graph can be placed" {
		t.Error(err)
	}
}
