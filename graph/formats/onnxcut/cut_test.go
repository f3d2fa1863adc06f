package onnxcut_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph/formats/onnx"
	"placer/graph/formats/onnxcut"
)

const file = "../onnx/testdata/light_squeezenet.onnx"

// half puts the nodes from the k-th on in a second stage.
func half(k int) func(*onnxcut.Node) int {
	i := -1
	return func(*onnxcut.Node) int {
		if i++; i >= k {
			return 1
		}
		return 0
	}
}

// float is the type of every tensor of the model.
func float(*onnxcut.Node, int) (int32, []int64) { return 1, make([]int64, 4) }

// The stages are models that hold all nodes once, and the FLOPs and parameters of the
// whole; the second reads what the first makes.
func TestCut(t *testing.T) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := onnx.Import(data, "m", onnx.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{1, 30, 77, 104} {
		stages, err := onnxcut.Cut(data, "m", half(k), float)
		if err != nil || len(stages) != 2 {
			t.Fatalf("cut at %d: %d stages, %v", k, len(stages), err)
		}
		if n := len(stages[0].Nodes); n != k || n+len(stages[1].Nodes) != 105 {
			t.Errorf("cut at %d: %d and %d nodes", k, n, len(stages[1].Nodes))
		}
		for _, in := range stages[1].Inputs {
			if in != "data_0" && !slices.Contains(stages[0].Outputs, in) {
				t.Errorf("cut at %d: the second stage reads %s, the first makes %v", k, in, stages[0].Outputs)
			}
		}
		first, sum, err := onnx.Import(stages[0].Model, "first", onnx.Default())
		if err != nil {
			t.Errorf("cut at %d: %v", k, err)
			continue
		}
		if first.FLOPs() > whole.FLOPs() || sum.Outputs != len(stages[0].Outputs) {
			t.Errorf("cut at %d: the first stage has %v of %v FLOPs, %d outputs", k, first.FLOPs(), whole.FLOPs(), sum.Outputs)
		}
	}
}

// A node is never before what it reads.
func TestOrder(t *testing.T) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	stages, err := onnxcut.Cut(data, "m", func(*onnxcut.Node) int { i++; return i % 2 }, float)
	if err != nil || len(stages) != 2 || len(stages[0].Nodes)+len(stages[1].Nodes) != 105 {
		t.Fatalf("%v", err)
	}
	for _, out := range stages[1].Outputs {
		for _, in := range stages[0].Inputs {
			if in == out {
				t.Errorf("the first stage reads %s of the second", in)
			}
		}
	}
}

// Nodes that no plan places, for they depend on weights and constants alone, are in each stage
// that reads what they make: weights that stand transposed in the file are not sent. A shape
// is taken where the tensor is.
func TestFoldedNodes(t *testing.T) {
	text := func(number protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), s)
	}
	message := func(number protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), bytes.Join(parts, nil))
	}
	node := func(op, out string, in ...string) []byte {
		parts := [][]byte{text(2, out), text(3, out), text(4, op)}
		for _, x := range in {
			parts = append(parts, text(1, x))
		}
		return message(1, parts...)
	}
	model := message(7, node("Transpose", "wt", "w"), node("Transpose", "both", "v"), node("Identity", "kept", "w"), node("Relu", "a", "x"), node("MatMul", "b", "a", "both"),
		node("Shape", "s", "a"), node("MatMul", "c", "b", "both"), node("MatMul", "d", "c", "wt"), node("Reshape", "y", "d", "s"),
		message(5, text(8, "w")), message(5, text(8, "v")), message(11, text(1, "x")), message(12, text(1, "y")), message(12, text(1, "kept")))
	placed := map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "y": 1}
	stages, err := onnxcut.Cut(model, "m", func(n *onnxcut.Node) int {
		if s, ok := placed[n.Name]; ok {
			return s
		}
		return -1
	}, float)
	if err != nil || len(stages) != 2 {
		t.Fatalf("%d stages, %v", len(stages), err)
	}
	for k, want := range []onnxcut.Stage{
		{Inputs: []string{"x"}, Outputs: []string{"kept", "b", "s"}, Nodes: []string{"both", "kept", "a", "b", "s"}},
		{Inputs: []string{"b", "s"}, Outputs: []string{"y"}, Nodes: []string{"wt", "both", "c", "d", "y"}},
	} {
		if got := stages[k]; !slices.Equal(got.Inputs, want.Inputs) || !slices.Equal(got.Outputs, want.Outputs) || !slices.Equal(got.Nodes, want.Nodes) {
			t.Errorf("stage %d reads %v, makes %v with %v", k, got.Inputs, got.Outputs, got.Nodes)
		}
	}
}

// How many sizes a vector of sizes has is recorded, for ONNX's shape inference fails without
// (Resize); how long a tensor is that has a row for each of something is not.
func TestLengthsOfShapes(t *testing.T) {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	number := func(n protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), value)
	}
	node := func(op, out string, in ...string) []byte {
		n := slices.Concat(field(2, []byte(out)), field(3, []byte(out)), field(4, []byte(op)))
		for _, x := range in {
			n = append(n, field(1, []byte(x))...)
		}
		return field(1, n)
	}
	model := field(7, slices.Concat(node("Shape", "s", "x"), node("Cast", "c", "s"), node("Range", "r", "zero", "n", "one"), node("Add", "y", "c", "r"),
		field(5, field(8, []byte("zero"))), field(5, field(8, []byte("one"))), field(11, field(1, []byte("x"))), field(11, field(1, []byte("n"))), field(12, field(1, []byte("y")))))
	at := map[string]int{"s": 0, "c": 0, "r": 0, "y": 1}
	stages, err := onnxcut.Cut(model, "m", func(n *onnxcut.Node) int { return at[n.Name] }, func(n *onnxcut.Node, _ int) (int32, []int64) { return 7, []int64{4} })
	if err != nil || len(stages) != 2 {
		t.Fatalf("%d stages, %v", len(stages), err)
	}
	four := field(2, field(1, number(1, 4))) // shape { dim { dim_value: 4 } }
	open := field(2, field(1, nil))
	for name, want := range map[string][]byte{"c": four, "r": open} {
		tensor := append(number(1, 7), want...)
		if info := append(field(1, []byte(name)), field(2, field(1, tensor))...); !bytes.Contains(stages[1].Model, field(11, info)) {
			t.Errorf("%s is not recorded as it should be", name)
		}
	}
}

func TestFaults(t *testing.T) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := onnxcut.Cut(data, "f", half(30), func(*onnxcut.Node, int) (int32, []int64) { return 0, nil }); err == nil || !strings.HasPrefix(err.Error(), "f: the cut passes tensor ") {
		t.Error(err)
	}
	if _, err := onnxcut.Cut([]byte("\x08\x07"), "f", half(1), float); err == nil || err.Error() != "f: is no ONNX model: it has no graph" {
		t.Error(err)
	}
	if _, err := onnxcut.Cut(data[:len(data)-9], "f", half(1), float); err == nil || !strings.HasPrefix(err.Error(), "f: ") {
		t.Error(err)
	}
}

// FuzzCut: no input panics, and every error is one line that begins with the file's name.
func FuzzCut(f *testing.F) {
	data, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := onnxcut.Cut(data, "f", half(3), float)
		if err != nil && (!strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q", err)
		}
	})
}
