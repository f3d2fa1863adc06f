package onnx

import (
	"os"
	"strings"
	"testing"

	"placer/graph/formats/formatstest"

	"google.golang.org/protobuf/encoding/protowire"
)

// relu is a model of the given nodes from x [2,3] to y.
func relu(nodes ...[]byte) []byte {
	return modelOf(append(nodes, inputOf("x", 2, 3), outputOf("y"))...)
}

func TestErrors(t *testing.T) {
	good := nodeOf("a", "Relu", list("x"), list("y"))
	deep := nodeOf("a", "If", list("x"), list("y"))
	for range 40 {
		deep = nodeOf("a", "If", list("x"), list("y"), graphAttr("then_branch", deep))
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "is no ONNX model: it has no graph"},
		{"text", []byte("ResNet-50 in some other form"), "is no ONNX model, or a damaged one: byte "},
		{"claims more than there is", append(numberField(1, 8), 0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f), "byte 2: the model: field 7 is longer than what is left of the model: the file is truncated or damaged"},
		{"no nodes", modelOf(inputOf("x")), "the model's graph has no nodes"},
		{"two graphs", append(relu(good), relu(good)...), "the model has two graphs"},
		{"no op_type", modelOf(bytesField(1, textField(3, "a"))), "node 0 (a): byte "},
		{"nested too deep", modelOf(deep), "graphs are nested deeper than 16"},
		{"input from nowhere", relu(nodeOf("a", "Relu", list("z"), list("y"))), `m.onnx: node 0 (a): input 0 ("z") is made by no node, input or initializer`},
		{"output from nowhere", relu(nodeOf("a", "Relu", list("x"), list("z"))), `m.onnx: output 0 ("y") of the graph is made by no node`},
		{"made twice", relu(good, nodeOf("b", "Relu", list("x"), list("y"))), `m.onnx: node 1 (b): output 0 ("y") is made by node 0 (a) too`},
		{"makes an input", relu(nodeOf("a", "Relu", list("x"), list("x"))), `node 0 (a): output 0 ("x") is also an input or an initializer`},
		{"cycle", relu(nodeOf("a", "Add", list("x", "q"), list("p")), nodeOf("b", "Relu", list("p"), list("q")), nodeOf("c", "Relu", list("x"), list("y"))),
			`m.onnx: node 0 (a): is part of a cycle: reads "q" of node 1 (b), which reads "p"`},
		{"reads itself", relu(nodeOf("a", "Add", list("x", "y"), list("y"))), `node 0 (a): is part of a cycle: reads "y"`},
		{"two initializers", relu(good, initOf(intsTensor("w", 1)), initOf(intsTensor("w", 2))), `initializer 1: name "w" is empty or taken`},
		{"two inputs", relu(good, inputOf("x", 1)), `input 1: name "x" is empty or taken`},
		{"input without shape", modelOf(nodeOf("n", "Relu", list("x"), list("p")), nodeOf("Conv_3", "Conv", list("p", "w"), list("y")), initOf(tensorOf("w", elemFloat, 1, 1, 1, 1)), bytesField(11, textField(1, "x"))),
			`m.onnx: node 0 (n): input 0 has no shape: "x" is no tensor`},
		{"missing weights", modelOf(nodeOf("Conv_3", "Conv", list("x"), list("y")), inputOf("x", 1, 1, 8, 8)), `node 0 (Conv_3): input 1 is missing`},
		{"channels", modelOf(nodeOf("c", "Conv", list("x", "w"), list("y")), inputOf("x", 1, 3, 8, 8), initOf(tensorOf("w", elemFloat, 4, 2, 3, 3))), `weights [4 2 3 3] in 1 groups do not fit input [1 3 8 8]`},
		{"window", modelOf(nodeOf("c", "Conv", list("x", "w"), list("y")), inputOf("x", 1, 2, 2, 8), initOf(tensorOf("w", elemFloat, 4, 2, 3, 3))), `a window of 3 does not fit into 2`},
		{"product", modelOf(nodeOf("m", "MatMul", list("x", "w"), list("y")), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 4, 5))), `node 0 (m): product of [2 3] and [4 5]: 3 columns against 4 rows`},
		{"broadcast", modelOf(nodeOf("m", "Add", list("x", "w"), list("y")), inputOf("x", 2, 3), initOf(tensorOf("w", elemFloat, 4))), `shapes [[2 3] [4]] do not fit each other`},
		{"open dimensions", modelOf(nodeOf("m", "MatMul", list("x", "w"), list("y")), inputOf("x", "batch", "total", "width"), initOf(tensorOf("w", elemFloat, 4, 5))),
			`node 0 (m): product of [1 1 1] and [4 5]: 1 columns against 4 rows; no value is given for batch, total, width, taken as 1: --dim batch=N gives one`},
		{"reshape", modelOf(nodeOf("r", "Reshape", list("x", "s"), list("y")), inputOf("x", 2, 3), initOf(intsTensor("s", 4, -1))), `cannot reshape [2 3] to [4 -1]`},
		{"reshape by data", modelOf(nodeOf("r", "Reshape", list("x", "s"), list("y")), inputOf("x", 2, 3), bytesField(11, valueOf("s", elemInt64, 2))), `node 0 (r): input 1 must be a constant, or follow from shapes`},
		{"reshape from an external file", modelOf(nodeOf("r", "Reshape", list("x", "s"), list("y")), inputOf("x", 2, 3),
			initOf(append(tensorOf("s", elemInt64, 2), bytesField(13, concatBytes(textField(1, "location"), textField(2, "w.bin")))...))), `input 1 must be a constant`},
		{"huge dimension", modelOf(nodeOf("a", "Relu", list("x"), list("y")), inputOf("x", 1<<50)), `dimension 1125899906842624`},
		{"huge tensor", modelOf(nodeOf("a", "Relu", list("x"), list("y")), inputOf("x", 1<<40, 1<<40)), `m.onnx: input "x": shape [1099511627776 1099511627776] is too large`},
		{"huge initializer", relu(good, initOf(tensorOf("w", elemFloat, 1<<40, 1<<40))), `initializer "w": shape [1099511627776 1099511627776] is too large`},
		{"huge result", modelOf(nodeOf("a", "Tile", list("x", "r"), list("y")), inputOf("x", 2, 3), initOf(intsTensor("r", 1<<40, 1<<40))), `output 0: shape [2199023255552 3298534883328] is too large`},
		{"huge repeat", modelOf(nodeOf("a", "Tile", list("x", "r"), list("y")), inputOf("x", 2, 3), initOf(intsTensor("r", 1<<62, 1))), `dimension 2 times 4611686018427387904`},
		{"huge constant", modelOf(nodeOf("a", "ConstantOfShape", list("s"), list("y")), initOf(intsTensor("s", 1<<47, 256))), `node 0 (a): dimension 140737488355328 times 256`},
		{"huge in bytes", modelOf(nodeOf("a", "Expand", list("x", "s"), list("y")), inputOf("x", 1), initOf(intsTensor("s", 1<<46, 512))), `m.onnx: graph m: op 2 (a): byte counts`},
		{"negative size", modelOf(nodeOf("a", "ConstantOfShape", list("s"), list("y")), initOf(intsTensor("s", -5))), `output 0 would be [-5]`},
		{"many dimensions", modelOf(nodeOf("a", "Unsqueeze", list("x"), list("y"), intsAttr("axes", make([]int64, 70)...)), inputOf("x", 2)), `70 axes`},
		{"unknown element type", relu(good, initOf(tensorOf("w", 99, 2))), `initializer "w": has element type 99, which is not known`},
		{"strings", modelOf(nodeOf("a", "Relu", list("w"), list("y")), initOf(tensorOf("w", elemString, 2))), `input 0 ("w") holds strings, which are not supported`},
		{"unknown operator", relu(nodeOf("a", "Frobnicate", list("x"), list("y"))), `node 0 (a): operator Frobnicate is not known, and the file records no shape for its outputs`},
		{"sequences", relu(nodeOf("a", "SequenceConstruct", list("x"), list("y"))), `node 0 (a): sequences of tensors are not supported`},
		{"control characters", relu(nodeOf("a\nb\x00", "Relu", list("z\n"), list("y"))), `m.onnx: node 0 (a_b_): input 0 ("z_") is made by no node`},
		{"control characters in an operator", relu(nodeOf("a", "F\nG", list("x"), list("y"))), `m.onnx: node 0 (a): operator F_G is not known`},
		{"control characters in an operator with a subgraph", relu(nodeOf("a", "F\nG", list("x"), list("y"), graphAttr("body", good))), `m.onnx: node 0 (a): operator F_G runs a subgraph`},
		{"a name without end", relu(nodeOf(strings.Repeat("ab", 5000), "Relu", list("z"), list("y"))), `m.onnx: node 0 (` + strings.Repeat("ab", 60) + `...): input 0 ("z") is made by no node`},
		{"function that calls itself", concatBytes(relu(nodeOf("a", "F", list("x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "F", list("u"), list("v")))), `m.onnx: node 0 (b): function F calls itself`},
		{"functions in a ring", concatBytes(relu(nodeOf("a", "F", list("x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "G", list("u"), list("v"))), functionOf("G", list("u"), list("v"), nodeOf("c", "Relu", list("u"), list("t")), nodeOf("d", "F", list("t"), list("v")))),
			`m.onnx: node 1 (d): functions call one another in a ring: F calls G calls F`},
		{"function without its output", concatBytes(relu(nodeOf("a", "F", list("x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "Relu", list("u"), list("w")))), `node 0 (a): function F: output "v" is made by no node`},
		{"function that reads what is not there", concatBytes(relu(nodeOf("a", "F", list("x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "Relu", list("z"), list("v")))), `node 0 (a): function F: node 0 (b): input "z" is made by no node or input of the function`},
		{"function with too many inputs", concatBytes(relu(nodeOf("a", "F", list("x", "x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "Relu", list("u"), list("v")))), `node 0 (a): function F has 1 inputs and 1 outputs, the call has 2 and 1`},
		{"fault in a function", concatBytes(relu(nodeOf("a", "F", list("x"), list("y"))), functionOf("F", list("u"), list("v"), nodeOf("b", "MatMul", list("u", "u"), list("v")))), `node 0 (a/b): product of [2 3] and [2 3]`},
		{"functions that grow", concatBytes(relu(nodeOf("a", "F0", list("x"), list("y"))), doubling(14)), `subgraphs and functions come to more than`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sum, err := Import(c.data, "m.onnx", Default())
			if err == nil || g != nil || sum != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "m.onnx: ") {
				t.Errorf("error is not one line that starts with the file's name: %q", s)
			}
		})
	}
}

func functionOf(name string, in, out []string, nodes ...[]byte) []byte {
	b := textField(1, name)
	for _, s := range in {
		b = append(b, textField(4, s)...)
	}
	for _, s := range out {
		b = append(b, textField(5, s)...)
	}
	for _, n := range nodes {
		_, _, k := protowire.ConsumeTag(n) // nodeOf's tag is that of a graph
		b = append(append(b, protowire.AppendTag(nil, 7, protowire.BytesType)...), n[k:]...)
	}
	return bytesField(25, b)
}

// doubling is a chain of functions, each of which calls the next eight times.
func doubling(n int) (all []byte) {
	for k := range n {
		name, next := "F"+string(rune('0'+k)), "F"+string(rune('0'+k+1))
		if k == n-1 {
			next = "Relu"
		}
		var nodes [][]byte
		in := "u"
		for j := range 8 {
			out := "v" + string(rune('0'+j))
			if j == 7 {
				out = "v"
			}
			nodes = append(nodes, nodeOf("", next, list(in), list(out)))
			in = out
		}
		all = append(all, functionOf(name, list("u"), list("v"), nodes...)...)
	}
	return all
}

// FuzzImport: no input panics or takes memory by its claims, and every error is
// one line that begins with the file's name.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"light_squeezenet", "gpt2_one_layer", "gpt2_megatron", "dummy_t5"} {
		data, err := os.ReadFile("testdata/" + name + ".onnx")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	models, _, names := readCases(f)
	for _, name := range names {
		if data := models[name+".onnx"]; len(data) < 3000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		_, _, err := Import(data, "m.onnx", Config{DefaultDim: 3})
		if err != nil && !formatstest.Located(err, "m.onnx") {
			t.Errorf("error is not one located line: %q", err)
		}
	})
}
