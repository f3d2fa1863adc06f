package costgraph_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/costgraph"
)

const example = "testdata/readme_example.pbtxt"

func read(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestExampleOfREGAL(t *testing.T) {
	im, err := costgraph.Import(read(t), "example")
	if err != nil {
		t.Fatal(err)
	}
	g := im.Graph
	if g.NumOps() != 5 || g.NumTensors() != 3 || g.NumEdges() != 1 || g.NumControl() != 4 {
		t.Errorf("%d ops, %d tensors, %d edges, %d control", g.NumOps(), g.NumTensors(), g.NumEdges(), g.NumControl())
	}
	if x := im.Seconds[2]; x != 58e-6 {
		t.Errorf("op 2 takes %v, want 58 us", x)
	}
	if b := g.Tensor(g.Inputs(4)[0]).Bytes; b != 70 {
		t.Errorf("op 4 reads %d bytes, want 70", b)
	}
}

// Text and binary say the same, and the published text is written byte for byte.
func TestRoundTrip(t *testing.T) {
	data := read(t)
	def, err := costgraph.Decode(data, "example")
	if err != nil {
		t.Fatal(err)
	}
	var text, binary bytes.Buffer
	if err := costgraph.WriteText(&text, def); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(text.String()), strings.TrimSpace(string(data)); got != want {
		t.Errorf("written:\n%s\nwant:\n%s", got, want)
	}
	if err := costgraph.WriteBinary(&binary, def); err != nil {
		t.Fatal(err)
	}
	a, err := costgraph.Import(text.Bytes(), "g")
	if err != nil {
		t.Fatal(err)
	}
	b, err := costgraph.Import(binary.Bytes(), "g")
	if err != nil {
		t.Fatal(err)
	}
	c, err := costgraph.FromDef(costgraph.Export(b.Graph, b.Seconds), "g")
	if err != nil {
		t.Fatal(err)
	}
	if a.Graph.Hash() != b.Graph.Hash() || c.Graph.Hash() != b.Graph.Hash() || fmt.Sprint(a.Seconds) != fmt.Sprint(c.Seconds) {
		t.Error("text, binary and exported graphs differ")
	}
	for name, data := range map[string][]byte{"text": text.Bytes(), "binary": binary.Bytes()} {
		if !costgraph.Is(data) {
			t.Errorf("%s is not taken for a cost graph", name)
		}
	}
}

func TestIsNot(t *testing.T) {
	for name, data := range map[string]string{
		"graphdef text":   "node {\n  name: \"x\"\n  op: \"Placeholder\"\n}\n",
		"graphdef binary": "\n\x13\n\x01x\x12\x0bPlaceholder\x1a\x01y",
		"onnx":            "\x08\x07\x12\x04test",
		"json":            `{"format": "placer graph 1"}`,
		"empty":           "",
	} {
		if costgraph.Is([]byte(data)) {
			t.Errorf("%s is taken for a cost graph", name)
		}
	}
}

func TestErrorsAreLocated(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"syntax":  {"node {\n  name: \"a\"\n  id: x\n}", "f: cost graph: (line 3:"},
		"unknown": {"node {\n  nam: \"a\"\n}", "f: cost graph: (line 2:3): unknown field: nam"},
		"name":    {"node { name: \"a\\n\" }", `f: node 0: name "a\n" has control characters`},
		"same id": {"node { name: \"a\" } node { name: \"b\" }", `f: node 1 (b): id 0 is that of node 0 (a) too`},
		"input":   {"node { name: \"a\" input_info { preceding_node: 7 } }", `f: node 0 (a): input 0: no node has id 7`},
		"port":    {"node { name: \"a\" } node { name: \"b\" id: 1 input_info { preceding_port: 2 } }", `f: node 1 (b): input 0: node 0 (a) has 0 outputs, want port 2`},
		"control": {"node { name: \"a\" control_input: 4 }", `f: node 0 (a): control input 0: no node has id 4`},
		"cost":    {"node { name: \"a\" compute_cost: -4 }", `f: node 0 (a): compute cost -4`},
		"size":    {"node { name: \"a\" output_info { size: 9000000000000000000 } }", `f: node 0 (a): output 0: size 9000000000000000000`},
		"cycle":   {"node { name: \"a\" control_input: 1 } node { name: \"b\" id: 1 control_input: 0 }", "f: graph f: cycle through op 0 (a): a <- b <- a"},
	} {
		if _, err := costgraph.Import([]byte(c.text), "f"); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	def, _ := costgraph.Decode(read(t), "example")
	var binary bytes.Buffer
	if err := costgraph.WriteBinary(&binary, def); err != nil {
		t.Fatal(err)
	}
	if _, err := costgraph.Import(binary.Bytes()[:binary.Len()-3], "f"); err == nil || !strings.Contains(err.Error(), "f: cost graph: node 4: ") {
		t.Errorf("a cut file: %v", err)
	}
}

// Nodes may come in any order and share names; times stay with their ops.
func TestReordered(t *testing.T) {
	im, err := costgraph.Import([]byte(`node { name: "late" id: 9 input_info { preceding_node: 3 } compute_cost: 5 }
		node { name: "x/MatMul_4" id: 3 output_info { size: -1 } compute_cost: 7 } node { name: "late" id: 4 temporary_memory_size: 6 }`), "f")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range graph.OpID(3) {
		o := im.Graph.Op(i)
		got = append(got, fmt.Sprint(o.Name, " ", o.Kind, " ", im.Seconds[i], " ", o.Workspace))
	}
	want := "[x/MatMul_4 MatMul 7 us 0 B late CostGraphNode 5 us 0 B late#1 CostGraphNode 0 s 6 B]"
	if fmt.Sprint(got) != want || im.UnknownSizes != 1 {
		t.Errorf("got %v, %d unknown sizes; want %s, 1", got, im.UnknownSizes, want)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(read(f))
	f.Add([]byte("\n\x04\n\x01x\x18\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		costgraph.Is(data)
		im, err := costgraph.Import(data, "f")
		if err == nil && len(im.Seconds) != im.Graph.NumOps() {
			t.Error("a time is missing")
		}
	})
}

func Example() {
	im, err := costgraph.Import([]byte(`
		node { name: "_SOURCE" }
		node { name: "a" id: 1 output_info { size: 64 } control_input: 0 compute_cost: 12 }
		node { name: "b" id: 2 input_info { preceding_node: 1 } compute_cost: 30 }`), "tiny.pbtxt")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(im.Graph.NumOps(), "ops,", im.Graph.NumEdges(), "edge,", im.Seconds)
	// Output: 3 ops, 1 edge, [0 s 12 us 30 us]
}
