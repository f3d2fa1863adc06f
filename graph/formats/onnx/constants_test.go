package onnx

import (
	"fmt"
	"slices"
	"testing"

	"placer/graph"
	"placer/units"
)

// kindsOf lists the ops of g as "name:kind", with their parameters where they have some.
func kindsOf(g *graph.Graph) (all []string) {
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		s := o.Name + ":" + string(o.Kind)
		if o.Params > 0 {
			s += fmt.Sprintf(":%d", o.Params)
		}
		all = append(all, s)
	}
	return all
}

// TestFolding: what depends on constants and shapes alone is there before the step.
func TestFolding(t *testing.T) {
	f := func(name string, dims ...int64) []byte { return initOf(tensorOf(name, elemFloat, dims...)) }
	for _, c := range []struct {
		name   string
		data   []byte
		want   []string
		folded int
		bytes  units.Bytes
	}{
		{"a transposed weight", modelOf(nodeOf("t", "Transpose", list("w"), list("v")), nodeOf("m", "MatMul", list("x", "v"), list("y")), inputOf("x", 2, 3), f("w", 4, 3), outputOf("y")),
			list("x:Placeholder", "t:Initializer:12", "m:MatMul"), 1, 48},
		{"a chain", modelOf(nodeOf("a", "Mul", list("w", "s"), list("p")), nodeOf("b", "Neg", list("p"), list("q")), nodeOf("m", "Sub", list("x", "q"), list("y")), inputOf("x", 4), f("w", 4), f("s"), outputOf("y")),
			list("x:Placeholder", "b:Initializer:4", "m:Sub"), 2, 16},
		// A view has no memory of its own: the weight is there once.
		{"a view of a shared weight", modelOf(nodeOf("r", "Reshape", list("w", "s"), list("v")), nodeOf("m", "MatMul", list("x", "v"), list("p")), nodeOf("n", "MatMul", list("p", "w"), list("y")),
			inputOf("x", 2, 4), f("w", 4, 4), initOf(intsTensor("s", 4, 4)), outputOf("y")),
			list("x:Placeholder", "w:Initializer:16", "m:MatMul", "n:MatMul"), 1, 0},
		// Both forms of a shared weight are held; its parameters count once.
		{"both forms of a weight", modelOf(nodeOf("t", "Transpose", list("w"), list("v")), nodeOf("m", "MatMul", list("x", "v"), list("p")), nodeOf("n", "MatMul", list("p", "w"), list("y")), inputOf("x", 2, 3), f("w", 4, 3), outputOf("y")),
			list("x:Placeholder", "t:Initializer:12", "m:MatMul", "w:Initializer", "n:MatMul"), 1, 48},
		{"parts of a weight", modelOf(nodeOf("s", "Split", list("w"), list("p", "q", "r"), intAttr("axis", 1)), nodeOf("m", "MatMul", list("x", "p"), list("a")), nodeOf("n", "MatMul", list("x", "q"), list("b")), nodeOf("o", "Add", list("a", "b"), list("y")),
			inputOf("x", 2, 6), f("w", 6, 9), outputOf("y")),
			list("x:Placeholder", "p:Initializer:54", "m:MatMul", "q:Initializer", "n:MatMul", "o:AddV2"), 1, 144},
		{"arithmetic on shapes", modelOf(nodeOf("s", "Shape", list("x"), list("d")), nodeOf("g", "Gather", list("d", "i"), list("e")), nodeOf("z", "ConstantOfShape", list("d"), list("h")), nodeOf("a", "Add", list("x", "h"), list("y")),
			inputOf("x", 2, 3), initOf(intsTensor("i", 1)), outputOf("y")),
			list("x:Placeholder", "z:Initializer:6", "a:AddV2"), 2, 0},
		{"a constant that is an output", modelOf(nodeOf("n", "Neg", list("w"), list("y")), nodeOf("r", "Relu", list("x"), list("z")), inputOf("x", 2), f("w", 4), outputOf("y"), outputOf("z")),
			list("x:Placeholder", "r:Relu", "n:Initializer"), 1, 16},
		{"what is random", modelOf(nodeOf("n", "RandomNormalLike", list("w"), list("p")), nodeOf("a", "Sub", list("x", "p"), list("y")), inputOf("x", 4), f("w", 4), outputOf("y")),
			list("x:Placeholder", "w:Initializer", "n:RandomStandardNormal", "a:Sub"), 0, 0},
		{"what reads an input", modelOf(nodeOf("t", "Transpose", list("x"), list("p")), nodeOf("m", "MatMul", list("p", "w"), list("y")), inputOf("x", 3, 2), f("w", 3, 4), outputOf("y")),
			list("x:Placeholder", "t:Transpose", "w:Initializer:12", "m:MatMul"), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := importModel(t, c.data)
			if got := kindsOf(g); !slices.Equal(got, c.want) {
				t.Errorf("ops %q, want %q", got, c.want)
			}
			if sum.Folded != c.folded || sum.FoldedBytes != c.bytes {
				t.Errorf("%d nodes and %v folded, want %d and %v", sum.Folded, sum.FoldedBytes, c.folded, c.bytes)
			}
			for i := range graph.OpID(g.NumOps()) {
				o := g.Op(i)
				if c := o.Kind.Class(); (c == graph.ClassVariable || c == graph.ClassConst) && (o.Resident == 0 || len(g.Inputs(i)) > 0) {
					t.Errorf("%s holds %v and reads %d tensors", o.Name, o.Resident, len(g.Inputs(i)))
				}
			}
		})
	}
}

// In a training step weights change: what is computed from them runs in every step.
func TestFoldingInTraining(t *testing.T) {
	data := modelOf(nodeOf("t", "Transpose", list("w"), list("v")), nodeOf("n", "Neg", list("k"), list("l")), nodeOf("m", "MatMul", list("x", "v"), list("p")), nodeOf("s", "Sub", list("p", "l"), list("y")),
		inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 4, 3)), initOf(tensorOf("k", elemFloat, 4)), outputOf("y"))
	how := Default()
	how.Training = true
	g, sum, err := Import(data, "m.onnx", how)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kindsOf(g), list("x:Placeholder", "w:Initializer:12", "t:Transpose", "m:MatMul", "n:Initializer", "s:Sub"); !slices.Equal(got, want) || sum.Folded != 1 {
		t.Errorf("ops %q, %d folded; want %q and the negated constant", got, sum.Folded, want)
	}
}

// TestQuantized: products between DequantizeLinear and QuantizeLinear are products of
// 8-bit integers or floats that read and write 8 bits.
func TestQuantized(t *testing.T) {
	w := concatBytes(initOf(tensorOf("w", elemInt8, 8, 4)), initOf(tensorOf("s", elemFloat)), initOf(tensorOf("z", elemInt8)), initOf(tensorOf("zu", elemUint8)))
	input := bytesField(11, valueOf("x", elemInt8, 2, 8))
	both := concatBytes(nodeOf("dx", "DequantizeLinear", list("x", "s", "z"), list("fx")), nodeOf("dw", "DequantizeLinear", list("w", "s", "z"), list("fw")))
	float8Weights := concatBytes(initOf(tensorOf("w", 17, 8, 4)), initOf(tensorOf("s", elemFloat)), initOf(tensorOf("z8", 17)))
	float8 := concatBytes(nodeOf("dx", "DequantizeLinear", list("x", "s", "z8"), list("fx")), nodeOf("dw", "DequantizeLinear", list("w", "s", "z8"), list("fw")), bytesField(11, valueOf("x", 17, 2, 8)), float8Weights)
	const read = 2*8 + 8*4 // of the operands; scales and zero points are 4 and 1
	for _, c := range []struct {
		name  string
		data  []byte
		want  []string
		dtype graph.DType
		bytes units.Bytes // of the product
		flops units.FLOPs // beside the product's
		count int
	}{
		{"quantised result", modelOf(both, nodeOf("m", "MatMul", list("fx", "fw"), list("p")), nodeOf("q", "QuantizeLinear", list("p", "s", "z"), list("y")), input, w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "m:QLinearMatMul"), graph.I8, read + 5 + 8, 8, 1},
		{"with a Relu", modelOf(both, nodeOf("m", "MatMul", list("fx", "fw"), list("p")), nodeOf("r", "Relu", list("p"), list("a")), nodeOf("q", "QuantizeLinear", list("a", "s", "z"), list("y")), input, w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "m:QLinearMatMul"), graph.I8, read + 5 + 8, 16, 1},
		{"float result", modelOf(both, nodeOf("m", "MatMul", list("fx", "fw"), list("y")), input, w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "m:MatMulInteger"), graph.I8, read + 5 + 32, 0, 1},
		{"result read twice", modelOf(both, nodeOf("m", "MatMul", list("fx", "fw"), list("p")), nodeOf("q", "QuantizeLinear", list("p", "s", "z"), list("y")), input, w, outputOf("y"), outputOf("p")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "m:MatMulInteger", "q:QuantizeLinear"), graph.I8, read + 5 + 32, 0, 1},
		// The weight stands transposed in the file, as exporters of linear layers write it.
		{"transposed weight", modelOf(nodeOf("dx", "DequantizeLinear", list("x", "s", "z"), list("fx")), nodeOf("dw", "DequantizeLinear", list("v", "s", "z"), list("fv")), nodeOf("t", "Transpose", list("fv"), list("fw")),
			nodeOf("m", "MatMul", list("fx", "fw"), list("p")), nodeOf("q", "QuantizeLinear", list("p", "s", "z"), list("y")), input, w, initOf(tensorOf("v", elemInt8, 4, 8)), outputOf("y")),
			list("x:Placeholder", "fw:Initializer:32", "s:Constant", "z:Constant", "m:QLinearMatMul"), graph.I8, read + 5 + 8, 8, 1},
		{"weight alone", modelOf(nodeOf("dw", "DequantizeLinear", list("w", "s", "z"), list("fw")), nodeOf("m", "MatMul", list("x", "fw"), list("y")), inputOf("x", 2, 8), w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "m:MatMul"), graph.F32, 4*16 + 32 + 5 + 32, 0, 0},
		// float8e4m3fn: the kind stays, the type and the bytes are those of 8 bits.
		{"float8", modelOf(float8, nodeOf("m", "MatMul", list("fx", "fw"), list("p")), nodeOf("q", "QuantizeLinear", list("p", "s", "z8"), list("y")), outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z8:Constant", "m:MatMul"), graph.F8, read + 5 + 8, 8, 1},
		{"float8 to floats", modelOf(float8, nodeOf("m", "MatMul", list("fx", "fw"), list("y")), outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z8:Constant", "m:MatMul"), graph.F8, read + 5 + 32, 0, 1},
		{"float8 weight alone", modelOf(nodeOf("dw", "DequantizeLinear", list("w", "s", "z8"), list("fw")), nodeOf("m", "MatMul", list("x", "fw"), list("y")), inputOf("x", 2, 8), float8Weights, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z8:Constant", "m:MatMul"), graph.F32, 4*16 + 32 + 5 + 32, 0, 0},
		{"no product", modelOf(nodeOf("dw", "DequantizeLinear", list("w", "s", "z"), list("fw")), nodeOf("m", "Mul", list("x", "fw"), list("y")), inputOf("x", 8, 4), w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "s:Constant", "z:Constant", "dw:DequantizeLinear", "m:Mul"), graph.F32, 3 * 128, 32, 0},
		{"QLinearMatMul", modelOf(nodeOf("m", "QLinearMatMul", list("x", "s", "z", "w", "s", "z", "s", "z"), list("y")), input, w, outputOf("y")),
			list("x:Placeholder", "s:Constant", "z:Constant", "w:Initializer:32", "m:QLinearMatMul"), graph.I8, read + 5 + 8, 0, 0},
		{"MatMulInteger", modelOf(nodeOf("m", "MatMulInteger", list("x", "w"), list("y")), input, w, outputOf("y")),
			list("x:Placeholder", "w:Initializer:32", "m:MatMulInteger"), graph.I8, read + 32, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum := importModel(t, c.data)
			if got := kindsOf(g); !slices.Equal(got, c.want) {
				t.Errorf("ops %q, want %q", got, c.want)
			}
			for i := range graph.OpID(g.NumOps()) {
				if o := g.Op(i); o.Name == "m" && (o.DType != c.dtype || o.Bytes != c.bytes || o.FLOPs-o.GEMM.FLOPs() != c.flops && c.flops > 0) {
					t.Errorf("%v, %v, %v beside the product; want %v, %v, %v", o.DType, o.Bytes, o.FLOPs-o.GEMM.FLOPs(), c.dtype, c.bytes, c.flops)
				}
			}
			if sum.Quantized != c.count || g.Params() != 32 {
				t.Errorf("%d products of 8 bits and %d parameters, want %d and 32", sum.Quantized, g.Params(), c.count)
			}
		})
	}
	// Convolutions, with a bias of 32 bits.
	g, sum := importModel(t, modelOf(nodeOf("dx", "DequantizeLinear", list("x", "s", "zu"), list("fx")), nodeOf("dw", "DequantizeLinear", list("k", "s", "z"), list("fk")), nodeOf("db", "DequantizeLinear", list("b", "s"), list("fb")),
		nodeOf("c", "Conv", list("fx", "fk", "fb"), list("p")), nodeOf("q", "QuantizeLinear", list("p", "s", "zu"), list("y")),
		bytesField(11, valueOf("x", elemUint8, 1, 3, 8, 8)), initOf(tensorOf("k", elemInt8, 4, 3, 3, 3)), initOf(tensorOf("b", elemInt32, 4)), w, outputOf("y")))
	o, shape := last(g)
	if o.Kind != "QLinearConv" || o.DType != graph.I8 || !shape.Equal(graph.Shape{1, 4, 6, 6}) || o.Bytes != 3*64+4*27+16+4+1+1+4*36 || sum.Quantized != 1 {
		t.Errorf("%+v to %v, %d quantised; ops %q", o, shape, sum.Quantized, kindsOf(g))
	}
}
