package onnx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the example models of testdata")

// examples are the models of docs/cost-model.md, by file name: shapes and operators,
// without the data of their weights.
func examples() map[string][]byte {
	weight := func(name string, e elem, dims ...int64) []byte { return initOf(tensorOf(name, e, dims...)) }
	all := map[string][]byte{}

	// Three layers whose weights stand transposed in the file.
	var transposed [][]byte
	in := "x"
	for k := range 3 {
		w, v, y := fmt.Sprint("w", k), fmt.Sprint("v", k), fmt.Sprint("y", k)
		transposed = append(transposed, weight(w, elemFloat, 4096, 4096), nodeOf("transpose"+fmt.Sprint(k), "Transpose", list(w), list(v), intsAttr("perm", 1, 0)), nodeOf("product"+fmt.Sprint(k), "MatMul", list(in, v), list(y)))
		in = y
	}
	all["transposed.onnx"] = modelOf(append(transposed, inputOf("x", 128, 4096), outputOf(in))...)

	// A chain of 40 products, each with a weight of 16.8 MB.
	var chain [][]byte
	in = "x"
	for k := range 40 {
		w, y := fmt.Sprint("w", k), fmt.Sprint("y", k)
		chain = append(chain, weight(w, elemFloat, 2048, 2048), nodeOf("product"+fmt.Sprint(k), "MatMul", list(in, w), list(y)))
		in = y
	}
	all["chain.onnx"] = modelOf(append(chain, inputOf("x", 64, 2048), outputOf(in))...)

	// Four layers in floats, and the same layers quantised: every activation goes through
	// QuantizeLinear and DequantizeLinear, every weight is stored in 8 bits.
	var float, quantized [][]byte
	in = "x"
	quantized = append(quantized, weight("scale", elemFloat), weight("zero", elemInt8), nodeOf("quantize", "QuantizeLinear", list("x", "scale", "zero"), list("q")))
	q := "q"
	for k := range 4 {
		n := fmt.Sprint(k)
		float = append(float, weight("w"+n, elemFloat, 4096, 4096), nodeOf("product"+n, "MatMul", list(in, "w"+n), list("p"+n)), nodeOf("relu"+n, "Relu", list("p"+n), list("y"+n)))
		in = "y" + n
		quantized = append(quantized, weight("w"+n, elemInt8, 4096, 4096),
			nodeOf("input"+n, "DequantizeLinear", list(q, "scale", "zero"), list("a"+n)), nodeOf("weight"+n, "DequantizeLinear", list("w"+n, "scale", "zero"), list("b"+n)),
			nodeOf("product"+n, "MatMul", list("a"+n, "b"+n), list("p"+n)), nodeOf("relu"+n, "Relu", list("p"+n), list("r"+n)),
			nodeOf("requantize"+n, "QuantizeLinear", list("r"+n, "scale", "zero"), list("q"+n)))
		q = "q" + n
	}
	quantized = append(quantized, nodeOf("output", "DequantizeLinear", list(q, "scale", "zero"), list("y")))
	all["float.onnx"] = modelOf(append(float, inputOf("x", 256, 4096), outputOf(in))...)
	all["quantized.onnx"] = modelOf(append(quantized, inputOf("x", 256, 4096), outputOf("y"))...)

	// A block that is a function, which calls another for each of its layers.
	ref := concatBytes(textField(1, "transB"), textField(21, "transposed"))
	dense := functionOf("Dense", list("u", "w", "b"), list("v"), nodeOf("product", "Gemm", list("u", "w", "b"), list("t"), ref), nodeOf("relu", "Relu", list("t"), list("v")))
	block := functionOf("Block", list("u", "w", "b", "x", "c"), list("v"), nodeOf("up", "Dense", list("u", "w", "b"), list("h"), intAttr("transposed", 0)), nodeOf("down", "Dense", list("h", "x", "c"), list("v"), intAttr("transposed", 1)))
	all["functions.onnx"] = concatBytes(modelOf(nodeOf("block", "Block", list("x", "w", "b", "w2", "c"), list("y")), inputOf("x", "batch", 512), weight("w", elemFloat, 512, 2048), weight("b", elemFloat, 2048), weight("w2", elemFloat, 512, 2048), weight("c", elemFloat, 512), outputOf("y")), dense, block)
	return all
}

// TestExamples: the files of testdata are what the code above makes, and are read.
func TestExamples(t *testing.T) {
	for name, data := range examples() {
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, data) {
			t.Errorf("%s is not what the test makes (%v); go test -run Examples -update", path, err)
		}
		if _, _, err := Import(data, name, Default()); err != nil {
			t.Error(err)
		}
	}
}
