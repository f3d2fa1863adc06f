package onnx

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
)

func opNames(g *graph.Graph) (all []string) {
	for i := range graph.OpID(g.NumOps()) {
		all = append(all, g.Op(i).Name)
	}
	return all
}

// Nodes without names and with equal names get unique ones.
func TestNames(t *testing.T) {
	g, _ := importModel(t, modelOf(nodeOf("", "Relu", list("x"), list("a")), nodeOf("same", "Relu", list("a"), list("b")), nodeOf("same", "Relu", list("b"), list("c")),
		nodeOf("x", "Relu", list("c"), list("d")), nodeOf("same_1", "Relu", list("d"), list("y\t")), inputOf("x", 2)))
	if got, want := opNames(g), list("x", "Relu_0", "same", "same_1", "x_1", "same_1_1"); !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

// A file whose nodes are out of order is put in order.
func TestUnsorted(t *testing.T) {
	g, sum := importModel(t, modelOf(nodeOf("c", "Add", list("p", "p"), list("y")), nodeOf("b", "Relu", list("q"), list("p")), nodeOf("a", "Relu", list("x"), list("q")), inputOf("x", 2)))
	if got, want := opNames(g), list("x", "a", "b", "c"); !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if sum.Edges != 3 || g.NumEdges() != 4 { // p twice, q; and the input
		t.Errorf("%d edges between nodes and %d in all, want 3 and 4", sum.Edges, g.NumEdges())
	}
}

// An absent optional input is no tensor, though nodes may share its name.
func TestAbsentInputs(t *testing.T) {
	g, sum := importModel(t, modelOf(nodeOf("a", "Dropout", list("x", "", ""), list("p", "")), nodeOf("b", "Clip", list("p", "", "high"), list("y", "")), inputOf("x", 2), initOf(tensorOf("high", elemFloat))))
	if sum.Edges != 1 || g.NumEdges() != 3 {
		t.Errorf("%d edges between nodes and %d in all, want 1 and 3", sum.Edges, g.NumEdges())
	}
}

// TestWeightsByUse: constants are weights by what reads them.
func TestWeightsByUse(t *testing.T) {
	initializer := func(name string, e elem, dims ...int64) []byte { return initOf(tensorOf(name, e, dims...)) }
	for _, c := range []struct {
		name   string
		data   []byte
		params int64
	}{
		{"product", modelOf(nodeOf("", "MatMul", list("x", "w"), list("y")), inputOf("x", 2, 3), initializer("w", elemFloat, 3, 4)), 12},
		{"through a view", modelOf(nodeOf("", "Transpose", list("w"), list("v")), nodeOf("", "MatMul", list("x", "v"), list("y")), inputOf("x", 2, 3), initializer("w", elemFloat, 4, 3)), 12},
		{"quantized", modelOf(nodeOf("", "DequantizeLinear", list("w", "s"), list("v")), nodeOf("", "MatMul", list("x", "v"), list("y")), inputOf("x", 2, 3), initializer("w", elemInt8, 3, 4), initializer("s", elemFloat)), 12},
		// Blocks of 32 numbers of 4 bits: 3 columns of 2 blocks, the second of 8 numbers.
		{"packed", modelOf(inDomain("com.microsoft", nodeOf("", "MatMulNBits", list("x", "w", "s"), list("y"), intAttr("K", 40), intAttr("N", 3), intAttr("bits", 4), intAttr("block_size", 32))), inputOf("x", 2, 40), initializer("w", elemUint8, 3, 2, 16), initializer("s", elemFloat, 6)), 120},
		{"bias", modelOf(nodeOf("", "Add", list("x", "b"), list("y")), inputOf("x", 2, 3), initializer("b", elemFloat, 3)), 3},
		{"one number", modelOf(nodeOf("", "Mul", list("x", "b"), list("y")), inputOf("x", 2, 3), initializer("b", elemFloat)), 0},
		{"divisor", modelOf(nodeOf("", "Div", list("x", "b"), list("y")), inputOf("x", 2, 3), initializer("b", elemFloat, 3)), 0},
		{"integers", modelOf(nodeOf("", "Add", list("x", "b"), list("y")), bytesField(11, valueOf("x", elemInt64, 3)), initializer("b", elemInt64, 3)), 0},
		{"embedding", modelOf(nodeOf("", "Gather", list("w", "x"), list("y")), bytesField(11, valueOf("x", elemInt64, 3)), initializer("w", elemFloat, 10, 4)), 40},
		{"shared", modelOf(nodeOf("", "MatMul", list("x", "w"), list("p")), nodeOf("", "MatMul", list("p", "w"), list("y")), inputOf("x", 3, 3), initializer("w", elemFloat, 3, 3)), 9},
		{"statistics", modelOf(nodeOf("", "BatchNormalization", list("x", "s", "b", "m", "v"), list("y")), inputOf("x", 1, 5, 2, 2), initializer("s", elemFloat, 5), initializer("b", elemFloat, 5), initializer("m", elemFloat, 5), initializer("v", elemFloat, 5)), 10},
		{"unread", modelOf(nodeOf("", "Relu", list("x"), list("y")), inputOf("x", 2), initializer("w", elemFloat, 3, 3)), 0},
		{"constant", modelOf(nodeOf("w", "Constant", nil, list("w"), tensorAttr("value", tensorOf("", elemFloat, 3, 4))), nodeOf("", "MatMul", list("x", "w"), list("y")), inputOf("x", 2, 3)), 12},
		{"external", modelOf(nodeOf("", "MatMul", list("x", "w"), list("y")), inputOf("x", 2, 3), initOf(append(tensorOf("w", elemFloat, 3, 4), bytesField(13, concatBytes(textField(1, "location"), textField(2, "../w.bin")))...))), 12},
		{"sparse", modelOf(nodeOf("", "MatMul", list("x", "w"), list("y")), inputOf("x", 2, 3), bytesField(15, concatBytes(bytesField(1, tensorOf("w", elemFloat, 2)), bytesField(2, intsTensor("", 1, 7)), numberField(3, 3), numberField(3, 4)))), 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := importModel(t, c.data)
			if g.Params() != c.params || sum.Params != c.params {
				t.Errorf("%d parameters, want %d", g.Params(), c.params)
			}
			for i := range graph.OpID(g.NumOps()) {
				if o := g.Op(i); o.Params > 0 && o.Kind.Class() != graph.ClassVariable {
					t.Errorf("op %s of kind %s holds parameters", o.Name, o.Kind)
				}
			}
		})
	}
}

// TestTables: constants that stand where weights may, and that no step learns.
func TestTables(t *testing.T) {
	float := func(name string, dims ...int64) []byte { return initOf(tensorOf(name, elemFloat, dims...)) }
	ids := bytesField(11, valueOf("ids", elemInt64, 1, 6))
	x, half := inputOf("x", 1, 2, 6, 8), concatBytes(nodeOf("", "Neg", list("x"), list("r")))
	sum := func(a, b string) []byte {
		return concatBytes(nodeOf("", "Mul", list("x", a), list("p")), nodeOf("", "Mul", list("r", b), list("q")), nodeOf("", "Add", list("p", "q"), list("y")))
	}
	scores := inputOf("x", 1, 2, 6, 6)
	for _, c := range []struct {
		name           string
		data           []byte
		params, tables int64
	}{
		{"rotary", modelOf(half, sum("c", "s"), x, float("c", 6, 8), float("s", 6, 8)), 0, 96},
		{"rotary, by position", modelOf(half, nodeOf("", "Gather", list("c", "ids"), list("cg")), nodeOf("", "Gather", list("s", "ids"), list("sg")), sum("cg", "sg"), x, ids, float("c", 32, 8), float("s", 32, 8)), 0, 512},
		{"an embedding beside", modelOf(nodeOf("", "Gather", list("e", "ids"), list("g")), nodeOf("", "Add", list("x", "g"), list("y")), x, ids, float("e", 32, 8)), 256, 0},
		{"frequencies", modelOf(nodeOf("", "Cast", list("ids"), list("f"), intAttr("to", 1)), nodeOf("", "Unsqueeze", list("f", "ax"), list("u")), nodeOf("", "Mul", list("u", "w"), list("a")), nodeOf("", "Sin", list("a"), list("y")), ids, initOf(intsTensor("ax", 2)), float("w", 4)), 0, 4},
		{"frequencies by a product", modelOf(nodeOf("", "MatMul", list("w", "x"), list("a")), nodeOf("", "Transpose", list("a"), list("b")), nodeOf("", "Cos", list("b"), list("y")), inputOf("x", 1, 6), float("w", 4, 1)), 0, 4},
		{"a mask", modelOf(nodeOf("", "Add", list("x", "m"), list("s")), nodeOf("", "Softmax", list("s"), list("y")), scores, float("m", 1, 1, 6, 6)), 0, 36},
		{"slopes", modelOf(nodeOf("", "Add", list("x", "m"), list("s")), nodeOf("", "Reshape", list("s", "shape"), list("v")), nodeOf("", "Softmax", list("v"), list("y")), scores, initOf(intsTensor("shape", 1, 2, 36)), float("m", 2, 1, 6)), 0, 12},
		{"a bias of logits", modelOf(nodeOf("", "Add", list("x", "b"), list("s")), nodeOf("", "Softmax", list("s"), list("y")), inputOf("x", 2, 6), float("b", 6)), 6, 0},
		{"positions", modelOf(nodeOf("", "Add", list("x", "b"), list("s")), nodeOf("", "Relu", list("s"), list("y")), inputOf("x", 1, 6, 8), float("b", 1, 6, 8)), 48, 0},
		{"a scale", modelOf(nodeOf("", "Mul", list("x", "b"), list("y")), x, float("b", 8)), 8, 0},
		{"a gain of several dimensions", modelOf(nodeOf("", "Div", list("x", "x"), list("n")), nodeOf("", "Mul", list("n", "b"), list("y")), x, float("b", 6, 8)), 48, 0},
		{"weight by weight", modelOf(nodeOf("", "Mul", list("v", "g"), list("w")), nodeOf("", "MatMul", list("x", "w"), list("y")), x, float("v", 8, 4), float("g", 1, 4)), 36, 0},
		{"a table and a weight", modelOf(half, sum("c", "s"), nodeOf("", "MatMul", list("x", "c"), list("z")), inputOf("x", 1, 2, 8, 8), outputOf("z"), float("c", 8, 8), float("s", 8, 8)), 64, 64},
	} {
		g, sum := importModel(t, c.data)
		if g.Params() != c.params || sum.TableElements != c.tables {
			t.Errorf("%s: %d parameters and %d numbers of tables, want %d and %d", c.name, g.Params(), sum.TableElements, c.params, c.tables)
		}
	}
}

// The products that ops amount to, and what they cost.
func TestProducts(t *testing.T) {
	w := func(dims ...int64) []byte { return initOf(tensorOf("w", elemFloat, dims...)) }
	for _, c := range []struct {
		name string
		data []byte
		kind graph.Kind
		want graph.GEMM
	}{
		{"rows of a batch", modelOf(nodeOf("", "MatMul", list("x", "w"), list("y")), inputOf("x", 5, 2, 3), w(3, 4)), "MatMul", graph.GEMM{Batch: 1, M: 10, N: 4, K: 3}},
		{"batch by batch", modelOf(nodeOf("", "MatMul", list("x", "z"), list("y")), inputOf("x", 5, 2, 3), inputOf("z", 5, 3, 4)), "BatchMatMulV2", graph.GEMM{Batch: 5, M: 2, N: 4, K: 3}},
		{"batch of the right alone", modelOf(nodeOf("", "MatMul", list("x", "z"), list("y")), inputOf("x", 2, 3), inputOf("z", 5, 3, 4)), "BatchMatMulV2", graph.GEMM{Batch: 5, M: 2, N: 4, K: 3}},
		{"transposed", modelOf(nodeOf("", "Gemm", list("x", "w"), list("y"), intAttr("transA", 1), intAttr("transB", 1)), inputOf("x", 3, 2), w(4, 3)), "Gemm", graph.GEMM{Batch: 1, M: 2, N: 4, K: 3}},
		{"einsum", modelOf(nodeOf("", "Einsum", list("x", "z"), list("y"), stringAttr("equation", "bshd, bthd -> bhst")), inputOf("x", 2, 7, 3, 5), inputOf("z", 2, 11, 3, 5)), "Einsum", graph.GEMM{Batch: 6, M: 7, N: 11, K: 5}},
		{"einsum of a layer", modelOf(nodeOf("", "Einsum", list("x", "z"), list("y"), stringAttr("equation", "...d,dh->...h")), inputOf("x", 8, 512, 1024), inputOf("z", 1024, 16)), "Einsum", graph.GEMM{Batch: 1, M: 8 * 512, N: 16, K: 1024}},
		{"einsum of a layer from the right", modelOf(nodeOf("", "Einsum", list("x", "z"), list("y"), stringAttr("equation", "hd,...d->...h")), inputOf("x", 16, 1024), inputOf("z", 8, 512, 1024)), "Einsum", graph.GEMM{Batch: 1, M: 16, N: 8 * 512, K: 1024}},
		{"einsum of a batch", modelOf(nodeOf("", "Einsum", list("x", "z"), list("y"), stringAttr("equation", "...ij,...jk->...ik")), inputOf("x", 8, 4, 2, 3), inputOf("z", 8, 4, 3, 5)), "Einsum", graph.GEMM{Batch: 32, M: 2, N: 5, K: 3}},
		{"einsum of a batch and a repeated operand", modelOf(nodeOf("", "Einsum", list("x", "z"), list("y"), stringAttr("equation", "...ij,...jk->...ik")), inputOf("x", 8, 4, 2, 3), inputOf("z", 1, 4, 3, 5)), "Einsum", graph.GEMM{Batch: 4, M: 8 * 2, N: 5, K: 3}},
		{"convolution", modelOf(nodeOf("", "Conv", list("x", "w"), list("y"), intsAttr("pads", 1, 1, 1, 1)), inputOf("x", 2, 3, 8, 8), w(16, 3, 3, 3)), "Conv2D", graph.GEMM{Batch: 1, M: 2 * 64, N: 16, K: 27}},
		{"groups", modelOf(nodeOf("", "Conv", list("x", "w"), list("y"), intAttr("group", 2)), inputOf("x", 1, 4, 8, 8), w(16, 2, 1, 1)), "Conv2D", graph.GEMM{Batch: 2, M: 64, N: 8, K: 2}},
		{"depthwise", modelOf(nodeOf("", "Conv", list("x", "w"), list("y"), intAttr("group", 4), stringAttr("auto_pad", "SAME_UPPER"), intsAttr("strides", 2, 2)), inputOf("x", 1, 4, 7, 7), w(4, 1, 3, 3)), "DepthwiseConv2dNative", graph.GEMM{Batch: 4, M: 16, N: 1, K: 9}},
		{"one axis", modelOf(nodeOf("", "Conv", list("x", "w"), list("y"), intsAttr("dilations", 4)), inputOf("x", 1, 2, 100), w(6, 2, 2)), "Conv1D", graph.GEMM{Batch: 1, M: 96, N: 6, K: 4}},
		{"transposed convolution", modelOf(nodeOf("", "ConvTranspose", list("x", "w"), list("y"), intsAttr("strides", 2, 2)), inputOf("x", 1, 8, 4, 4), w(8, 3, 2, 2)), "ConvTranspose", graph.GEMM{Batch: 1, M: 16, N: 12, K: 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := importModel(t, c.data)
			if o, _ := last(g); o.Kind != c.kind || o.GEMM != c.want || o.FLOPs != c.want.FLOPs() {
				t.Errorf("%s, %+v, %v; want %s, %+v", o.Kind, o.GEMM, o.FLOPs, c.kind, c.want)
			}
		})
	}
}

// A bias costs an operation for each element of the output.
func TestBias(t *testing.T) {
	bias := initOf(tensorOf("b", elemFloat, 4))
	for _, c := range []struct {
		name string
		data []byte
		want units.FLOPs
	}{
		{"convolution", modelOf(nodeOf("", "Conv", list("x", "w", "b"), list("y")), inputOf("x", 2, 3, 8, 8), initOf(tensorOf("w", elemFloat, 4, 3, 3, 3)), bias), 2*2*36*4*27 + 2*36*4},
		{"transposed convolution", modelOf(nodeOf("", "ConvTranspose", list("x", "w", "b"), list("y")), inputOf("x", 1, 3, 2, 2), initOf(tensorOf("w", elemFloat, 3, 4, 2, 2)), bias), 2*4*16*3 + 4*9},
		{"product", modelOf(nodeOf("", "Gemm", list("x", "w", "b"), list("y")), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 3, 4)), bias), 2*2*4*3 + 2*4},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := importModel(t, c.data)
			if o, _ := last(g); o.FLOPs != c.want {
				t.Errorf("%v FLOPs, want %v", float64(o.FLOPs), float64(c.want))
			}
		})
	}
}

// TestDropout: outside of training it passes its input on.
func TestDropout(t *testing.T) {
	mode := func(x byte) []byte { return initOf(append(tensorOf("t", elemBool), bytesField(9, []byte{x})...)) }
	node := func(in ...string) []byte { return nodeOf("", "Dropout", in, list("y", "mask")) }
	old := func(m []byte) []byte { return append(m, bytesField(8, numberField(2, 6))...) }
	training := Default()
	training.Training = true
	for _, c := range []struct {
		name string
		data []byte
		cfg  Config
		want graph.Kind
	}{
		{"no mode", modelOf(node("x"), inputOf("x", 2, 3)), Default(), "Identity"},
		{"known to test", modelOf(node("x", "", "t"), inputOf("x", 2, 3), mode(0)), Default(), "Identity"},
		{"known to train", modelOf(node("x", "", "t"), inputOf("x", 2, 3), mode(1)), Default(), "Dropout"},
		{"a mode that is fed", modelOf(node("x", "", "t"), inputOf("x", 2, 3), boolInput("t", 1)), Default(), "Dropout"},
		{"a mask that is read", modelOf(node("x"), inputOf("x", 2, 3), outputOf("mask")), Default(), "Dropout"},
		{"a training step", modelOf(node("x"), inputOf("x", 2, 3)), training, "Dropout"},
		{"operator set 6", old(modelOf(node("x"), inputOf("x", 2, 3))), Default(), "Dropout"},
		{"operator set 6, testing", old(modelOf(nodeOf("", "Dropout", list("x"), list("y", "mask"), intAttr("is_test", 1)), inputOf("x", 2, 3))), Default(), "Identity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _, err := Import(c.data, "m.onnx", c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			o, shape := last(g)
			first, end := g.Outputs(graph.OpID(g.NumOps() - 1))
			if o.Kind != c.want || !shape.Equal(graph.Shape{2, 3}) {
				t.Errorf("%s to %v, want %s", o.Kind, shape, c.want)
			}
			if c.want == "Identity" && (o.FLOPs != 0 || o.Bytes != 0 || end != first+1) {
				t.Errorf("%v and %v to %d outputs, want a view", o.FLOPs, o.Bytes, end-first)
			}
		})
	}
}

// Operators that the examples of ONNX do not have.
func TestRareOperators(t *testing.T) {
	in := inDomain
	quantiser := func(domain, op string) []byte { // whose output is recorded with names for sizes
		return modelOf(in(domain, nodeOf("", op, list("x", "low", "high"), list("y"))), inputOf("x", 2, 3, 5, 7), inputOf("low", 1, 1, 1, 1), inputOf("high", 1, 1, 1, 1),
			bytesField(13, valueOf("y", elemFloat, "a", "b", "c", "d")))
	}
	for _, c := range []struct {
		name string
		data []byte
		want graph.Shape
	}{
		{"sizes of joined inputs", modelOf(in("com.microsoft", nodeOf("", "ConcatTraining", list("x", "z"), list("y", "sizes"))), nodeOf("", "Neg", list("sizes"), list("n")), inputOf("x", 2, 3), inputOf("z", 4, 3)), graph.Shape{2}},
		{"crop by its border", modelOf(nodeOf("", "Crop", list("x"), list("y"), intsAttr("border", 1, 2, 3, 4)), inputOf("x", 1, 3, 20, 30)), graph.Shape{1, 3, 14, 26}},
		{"crop to a size", modelOf(nodeOf("", "Crop", list("x"), list("y"), intsAttr("border", 1, 2, 0, 0), intsAttr("scale", 5, 6)), inputOf("x", 1, 3, 20, 30)), graph.Shape{1, 3, 5, 6}},
		{"FakeQuantize", quantiser("org.openvinotoolkit", "FakeQuantize"), graph.Shape{2, 3, 5, 7}},
		{"FakeQuant", quantiser("com.microsoft", "FakeQuant"), graph.Shape{2, 3, 5, 7}},
		{"brevitas", quantiser("onnx.brevitas", "Quant"), graph.Shape{2, 3, 5, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := importModel(t, c.data)
			if _, shape := last(g); !shape.Equal(c.want) {
				t.Errorf("shape %v, want %v", shape, c.want)
			}
		})
	}
	if _, _, err := Import(modelOf(nodeOf("", "Crop", list("x"), list("y"), intsAttr("border", 9, 0, 9, 0)), inputOf("x", 1, 3, 8, 8)), "small", Config{DefaultDim: 1}); err == nil || !strings.Contains(err.Error(), "leave nothing") {
		t.Errorf("a crop of everything: %v", err)
	}
}

// Operators of com.microsoft that are several layers or packed ones, by hand.
func TestContribOperators(t *testing.T) {
	ms := func(op string, in []string, attrs ...[]byte) []byte {
		return inDomain("com.microsoft", nodeOf("n", op, in, list("y"), attrs...))
	}
	w := func(name string, e elem, dims ...int64) []byte { return initOf(tensorOf(name, e, dims...)) }
	input := func(name string, e elem, dims ...any) []byte { return bytesField(11, valueOf(name, e, dims...)) }
	scale, zero := w("s", elemFloat), w("z", elemUint8)
	// 6 tokens, 2 of 8 experts each: 12 rows, of which every expert gets one and four
	// experts one more; 16 to 2*24 to 16.
	const rows, experts = 12, 8
	layers := units.FLOPs(2 * rows * (16*48 + 24*16))
	beside := units.FLOPs(5*6*8 + 2*rows*16 + 4*rows*48)
	for _, c := range []struct {
		name   string
		data   []byte
		kind   graph.Kind
		dtype  graph.DType
		shape  graph.Shape
		flops  units.FLOPs
		bytes  units.Bytes
		params int64
	}{
		{"QGemm", modelOf(ms("QGemm", list("x", "s", "z", "w", "s", "z", "b", "s", "z"), intAttr("transB", 1)), input("x", elemUint8, 2, 8), w("w", elemUint8, 4, 8), w("b", elemInt32, 4), scale, zero),
			"QLinearMatMul", graph.I8, graph.Shape{2, 4}, 2*2*4*8 + 8, 16 + 32 + 16 + 4 + 1 + 8, 32 + 4},
		{"QGemm to floats", modelOf(ms("QGemm", list("x", "s", "z", "w", "s", "z")), input("x", elemUint8, 2, 8), w("w", elemUint8, 8, 4), scale, zero),
			"MatMulInteger", graph.I8, graph.Shape{2, 4}, 2 * 2 * 4 * 8, 16 + 32 + 4 + 1 + 32, 32},
		// 3 sentences of 4 words, 2 heads of 8, 5 words past.
		{"QAttention", modelOf(ms("QAttention", list("x", "w", "b", "s", "s", "", "z", "z", "past"), intAttr("num_heads", 2)), input("x", elemUint8, 3, 4, 16), w("w", elemUint8, 16, 48), w("b", elemFloat, 48), input("past", elemFloat, 2, 3, 2, 5, 8), scale, zero),
			"ProjectedAttention", graph.F32, graph.Shape{3, 4, 16}, 2*12*48*16 + 6*(2*2*4*9*8+5*4*9), 3*4*16 + 16*48 + 4*48 + 4 + 1 + 4*2*3*2*5*8 + 4*3*4*16, 16*48 + 48},
		{"MoE", modelOf(ms("MoE", list("x", "r", "u", "", "d"), intAttr("k", 2)), inputOf("x", 6, 16), inputOf("r", 6, experts), w("u", elemFloat, experts, 48, 16), w("d", elemFloat, experts, 16, 24)),
			"MoE", graph.F32, graph.Shape{6, 16}, layers + beside, 4 * (6*16 + 6*8 + 8*16*(48+24) + 6*16), 8 * 16 * (48 + 24)},
		// One token reads 2 of 8 experts.
		{"MoE of one token", modelOf(ms("MoE", list("x", "r", "u", "", "d"), intAttr("k", 2)), inputOf("x", 1, 1, 16), inputOf("r", 1, experts), w("u", elemFloat, experts, 48, 16), w("d", elemFloat, experts, 16, 24)),
			"MoE", graph.F32, graph.Shape{1, 1, 16}, (layers + beside) / 6, 4 * (16 + 8 + 2*16*(48+24) + 16), 8 * 16 * (48 + 24)},
		{"QMoE", modelOf(ms("QMoE", list("x", "r", "u", "us", "", "d", "ds"), intAttr("k", 2)), inputOf("x", 6, 16), inputOf("r", 6, experts), w("u", elemUint8, experts, 48, 8), w("us", elemFloat, experts, 48), w("d", elemUint8, experts, 16, 12), w("ds", elemFloat, experts, 16)),
			"QMoE", graph.F32, graph.Shape{6, 16}, layers + beside, 4*(6*16+6*8+8*(48+16)+6*16) + 8*(48*8+16*12), 8 * 16 * (48 + 24)},
		{"GatherBlockQuantized", modelOf(ms("GatherBlockQuantized", list("w", "x", "ws")), input("x", elemInt64, 2, 3), w("w", elemUint8, 100, 32), w("ws", elemHalf, 100, 2)),
			"Gather", graph.F16, graph.Shape{2, 3, 64}, 6 * 64, 6*32 + 6*8 + 2*6*64, 100 * 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := importModel(t, c.data)
			o, shape := last(g)
			if o.Kind != c.kind || o.DType != c.dtype || !shape.Equal(c.shape) || o.FLOPs != c.flops || o.Bytes != c.bytes || g.Params() != c.params || len(sum.Notes) != 0 {
				t.Errorf("%s of %v to %v: %v, %v, %d parameters, notes %q; want %s of %v to %v: %v, %v, %d",
					o.Kind, o.DType, shape, float64(o.FLOPs), int64(o.Bytes), g.Params(), sum.Notes, c.kind, c.dtype, c.shape, float64(c.flops), int64(c.bytes), c.params)
			}
			if o.Kind != "Gather" && (o.GEMM.IsZero() || o.GEMM.FLOPs() > o.FLOPs) {
				t.Errorf("product %+v of %v", o.GEMM, o.FLOPs)
			}
		})
	}
}

// An operator without a rule is said, with its number, once.
func TestUnknownOperators(t *testing.T) {
	foo := func(in, out string) []byte { return inDomain("acme", nodeOf("", "Foo", list(in), list(out))) }
	recorded := func(name string) []byte { return bytesField(13, valueOf(name, elemFloat, 2, 3)) }
	g, sum := importModel(t, modelOf(foo("x", "a"), foo("a", "b"), inDomain("acme", nodeOf("", "Bar", list("b"), list("y"))), inputOf("x", 2, 3), recorded("a"), recorded("b"), recorded("y")))
	if o, _ := last(g); o.FLOPs != 6 {
		t.Errorf("%v, want an operation an element", o.FLOPs)
	}
	want := list("operator acme.Bar has no rule: it costs one operation an element", "operator acme.Foo has no rule: its 2 nodes cost one operation an element")
	if !slices.Equal(sum.Notes, want) {
		t.Errorf("notes %q, want %q", sum.Notes, want)
	}
}

// A recurrent layer's products, by hand: T=7 steps of a batch of 2, 5 inputs, 3
// hidden, 4 gates, both directions.
func TestRecurrentCost(t *testing.T) {
	layer := func(out ...string) []byte {
		return nodeOf("", "LSTM", list("x", "w", "r"), out, intAttr("hidden_size", 3), stringAttr("direction", "bidirectional"))
	}
	weights := concatBytes(inputOf("x", 7, 2, 5), initOf(tensorOf("w", elemFloat, 2, 12, 5)), initOf(tensorOf("r", elemFloat, 2, 12, 3)))
	g, sum := importModel(t, modelOf(layer("y", "h", "c"), weights))
	o, shape := last(g)
	products := 2. * 2 * 7 * 2 * 12 * (5 + 3)
	gates := 10. * 7 * 2 * 2 * 3 * 4
	if float64(o.FLOPs) != products+gates || !shape.Equal(graph.Shape{7, 2, 2, 3}) || g.Params() != 2*12*8 {
		t.Errorf("%v FLOPs to %v, %d parameters; want %v", float64(o.FLOPs), shape, g.Params(), products+gates)
	}
	// Rows of 3 numbers do not come out even, 2*5/3 more: so many columns.
	if want := (graph.GEMM{Batch: 2, M: 2, N: 12 + 20, K: 3}); o.GEMM != want || o.Repeats != 7 || o.Kernels > 1 || len(sum.Notes) > 0 {
		t.Errorf("%+v, notes %q; want 7 times %+v", o, sum.Notes, want)
	}
	// Once the input, weights, results and, twice, the gates; in each step the recurrent
	// weights and three states.
	once := 7*2*5 + 2*12*5 + 7*2*2*3 + 2*2*2*3 + 2*7*2*2*12
	if want := 4 * (once + 7*(2*12*3+3*2*2*3)); int(o.Bytes) != want {
		t.Errorf("moves %d bytes, want %d", o.Bytes, want)
	}
}

// A layer of one step is its two products at once.
func TestOneStep(t *testing.T) {
	g, _ := importModel(t, modelOf(nodeOf("", "GRU", list("x", "w", "r"), list("y"), intAttr("hidden_size", 3)), inputOf("x", 1, 2, 3), initOf(tensorOf("w", elemFloat, 1, 9, 3)), initOf(tensorOf("r", elemFloat, 1, 9, 3))))
	o, _ := last(g)
	if want := (graph.GEMM{Batch: 2, M: 2, N: 9, K: 3}); o.GEMM != want || o.Repeats != 0 || o.Bytes != 4*(6+27+27+6) {
		t.Errorf("%+v, want %+v once", o, want)
	}
}

// What several products of one op are beside the one that stands for them is charged to
// the vector units: there is nothing left of them, whatever their sizes.
func TestSeveralProducts(t *testing.T) {
	half := func(name string, dims ...int64) []byte { return initOf(tensorOf(name, elemHalf, dims...)) }
	input := func(dims ...any) []byte { return bytesField(11, valueOf("x", elemHalf, dims...)) }
	attend := func(heads int64) []byte {
		return inDomain("com.microsoft", nodeOf("", "Attention", list("x", "w", "b"), list("y"), intAttr("num_heads", heads)))
	}
	for _, c := range []struct {
		name string
		data []byte
		want graph.GEMM
		rest units.FLOPs // of softmax and gates
	}{
		// The projection, 10.9 GFLOP, and a third as much in the scores.
		{"attention", modelOf(attend(12), input(8, 384, 768), half("w", 768, 2304), half("b", 2304)), graph.GEMM{Batch: 1, M: 4096, N: 2304, K: 768}, 5 * 96 * 384 * 384},
		// One token: 0.3% in the scores of one key.
		{"attention of one token", modelOf(attend(12), input(1, 1, 768), half("w", 768, 2304), half("b", 2304)), graph.GEMM{Batch: 1, M: 1, N: 2304, K: 768}, 5 * 12},
		{"attention in one kernel", modelOf(inDomain("com.microsoft", nodeOf("", "MultiHeadAttention", list("x", "x", "x"), list("y"), intAttr("num_heads", 2))), input(3, 128, 64)), graph.GEMM{Batch: 6, M: 128, N: 128, K: 64}, 0},
		{"recurrence", modelOf(nodeOf("", "LSTM", list("x", "w", "r"), list("y"), intAttr("hidden_size", 96)), input(50, 32, 224), half("w", 1, 384, 224), half("r", 1, 384, 96)),
			graph.GEMM{Batch: 1, M: 32, N: 1280, K: 96}, 10 * 50 * 32 * 96 * 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := importModel(t, c.data)
			o, _ := last(g)
			n, _ := o.Iterations()
			if rest := o.FLOPs - o.GEMM.FLOPs()*units.FLOPs(n); o.GEMM != c.want || rest < c.rest || rest > c.rest+o.FLOPs/64 {
				t.Errorf("%+v and %v, want %+v and %v", o.GEMM, rest, c.want, c.rest)
			}
		})
	}
}

// The graph of a training export: what follows a gradient is backward.
func TestPhases(t *testing.T) {
	ms := func(b []byte) []byte { return inDomain("com.microsoft", b) }
	g, _ := importModel(t, modelOf(nodeOf("f", "Relu", list("x"), list("a")), ms(nodeOf("b", "ReluGrad", list("d", "a"), list("da"))), nodeOf("s", "Neg", list("da"), list("y")), inputOf("x", 2), inputOf("d", 2)))
	want := map[string]graph.Phase{"x": graph.Forward, "d": graph.Forward, "f": graph.Forward, "b": graph.Backward, "s": graph.Backward}
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Phase != want[o.Name] {
			t.Errorf("op %s is %v, want %v", o.Name, o.Phase, want[o.Name])
		}
	}
}

// Types that package graph lacks keep their true size.
func TestElementSizes(t *testing.T) {
	for _, c := range []struct {
		e    elem
		n    int64
		want int64
	}{{elemFloat, 3, 12}, {4, 3, 6}, {elemBool, 3, 3}, {14, 3, 24}, {15, 3, 48}, {16, 3, 6}, {22, 3, 2}, {22, 4, 2}, {25, 5, 2}, {26, 4, 1}} {
		if got := int64(c.e.bytes(c.n)); got != c.want {
			t.Errorf("%d elements of %v take %d bytes, want %d", c.n, c.e, got, c.want)
		}
	}
}
