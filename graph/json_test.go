package graph_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"placer/graph"
)

func write(t rapid.TB, g *graph.Graph) string {
	t.Helper()
	var buf bytes.Buffer
	if err := g.Write(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func read(t rapid.TB, doc string) *graph.Graph {
	t.Helper()
	g, err := graph.Read([]byte(doc), "g.json")
	if err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	return g
}

// sameGraph compares all that a graph's methods show, the hash included.
func sameGraph(t rapid.TB, a, b *graph.Graph) {
	t.Helper()
	if a.Name() != b.Name() || a.Hash() != b.Hash() {
		t.Errorf("graph %q %.12s became %q %.12s", a.Name(), a.Hash(), b.Name(), b.Hash())
	}
	if a.NumOps() != b.NumOps() || a.NumTensors() != b.NumTensors() {
		t.Fatalf("%d ops and %d tensors became %d and %d", a.NumOps(), a.NumTensors(), b.NumOps(), b.NumTensors())
	}
	for i := range graph.OpID(a.NumOps()) {
		if d := cmp.Diff(a.Op(i), b.Op(i)); d != "" {
			t.Errorf("op %d:\n%s", i, d)
		}
		if d := cmp.Diff(a.Inputs(i), b.Inputs(i)); d != "" {
			t.Errorf("inputs of op %d:\n%s", i, d)
		}
		if d := cmp.Diff(a.Control(i), b.Control(i)); d != "" {
			t.Errorf("control of op %d:\n%s", i, d)
		}
	}
	for k := range graph.TensorID(a.NumTensors()) {
		if d := cmp.Diff(a.Tensor(k), b.Tensor(k)); d != "" {
			t.Errorf("tensor %d:\n%s", k, d)
		}
		if d := cmp.Diff(a.Consumers(k), b.Consumers(k)); d != "" {
			t.Errorf("consumers of tensor %d:\n%s", k, d)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		doc := write(t, g)
		again := read(t, doc)
		sameGraph(t, g, again)
		if second := write(t, again); second != doc {
			t.Errorf("written twice:\n%s\n%s", doc, second)
		}
	})
}

// Ops may stand in any order: a hand-written file needs no sorting.
func TestJSONAnyOrder(t *testing.T) {
	g := read(t, `{"format": "placer graph 1", "ops": [
		{"name": "y", "kind": "Relu", "in": ["x"], "out": [{"shape": [2, 3]}]},
		{"name": "x", "kind": "Placeholder", "out": [{"shape": [2, 3], "dtype": "f16"}]}]}`)
	if g.Op(0).Name != "x" || g.Op(1).Name != "y" || g.Tensor(0).Bytes != 12 || g.Op(1).Bytes != 36 {
		t.Errorf("got %+v, %+v and tensor %+v", g.Op(0), g.Op(1), g.Tensor(0))
	}
}

// The element type of an output is that of its op, wherever the keys stand.
func TestJSONDTypeAfterOutputs(t *testing.T) {
	g := read(t, `{"format": "placer graph 1", "ops": [{"name": "x", "kind": "Placeholder", "out": [{"shape": [2]}], "dtype": "f64"}]}`)
	if x := g.Tensor(0); x.DType != graph.F64 || x.Bytes != 16 {
		t.Errorf("tensor %+v, want 16 bytes of f64", x)
	}
}

// A module is read and written, and changes neither the hash nor the bytes of a graph
// without it.
func TestJSONModule(t *testing.T) {
	const with = `{"format": "placer graph 1",
"name": "g",
"ops": [
{"name": "x", "kind": "Placeholder", "bytes": 0, "out": [{"shape": [2]}]},
{"name": "y", "kind": "Relu", "bytes": 16, "module": "transformer.h.3.mlp", "in": ["x"], "out": [{"shape": [2]}]}
]}
`
	without := strings.Replace(with, `"module": "transformer.h.3.mlp", `, "", 1)
	g, plain := read(t, with), read(t, without)
	if got := g.Op(1).Module; got != "transformer.h.3.mlp" || g.Op(0).Module != "" {
		t.Errorf("modules %q and %q, want none and transformer.h.3.mlp", g.Op(0).Module, got)
	}
	if got := write(t, g); got != with {
		t.Errorf("wrote\n%s, want\n%s", got, with)
	}
	if got := write(t, plain); got != without {
		t.Errorf("wrote\n%s, want\n%s", got, without)
	}
	if g.Hash() != plain.Hash() {
		t.Errorf("hash %.12s with modules, %.12s without", g.Hash(), plain.Hash())
	}
}

// Whether products are precise is read and written, and counts in the hash.
func TestJSONPrecise(t *testing.T) {
	const with = `{"format": "placer graph 1",
"name": "g",
"ops": [
{"name": "x", "kind": "MatMul", "precise": true, "flops": 16, "gemm": [1, 2, 2, 2], "bytes": 48, "out": [{"shape": [2, 2]}]}
]}
`
	g, plain := read(t, with), read(t, strings.Replace(with, `"precise": true, `, "", 1))
	if !g.Op(0).Precise || plain.Op(0).Precise || g.Hash() == plain.Hash() {
		t.Errorf("precise %v and %v, hashes %.12s and %.12s", g.Op(0).Precise, plain.Op(0).Precise, g.Hash(), plain.Hash())
	}
	if got := write(t, g); got != with {
		t.Errorf("wrote\n%s, want\n%s", got, with)
	}
}

// Iterations are read and written, and count in the hash where there are several.
func TestJSONRepeats(t *testing.T) {
	const with = `{"format": "placer graph 1",
"name": "g",
"ops": [
{"name": "x", "kind": "LSTM", "flops": 1600, "gemm": [1, 2, 2, 2], "repeats": 100, "kernels": 3, "bytes": 4800, "out": [{"shape": [2, 2]}]}
]}
`
	g := read(t, with)
	if o := g.Op(0); o.Repeats != 100 || o.Kernels != 3 {
		t.Errorf("%d iterations of %d kernels, want 100 of 3", o.Repeats, o.Kernels)
	}
	if got := write(t, g); got != with {
		t.Errorf("wrote\n%s, want\n%s", got, with)
	}
	plain := read(t, strings.Replace(with, `"repeats": 100, "kernels": 3, `, "", 1))
	once := read(t, strings.Replace(with, `"repeats": 100, "kernels": 3, `, `"repeats": 1, "kernels": 1, `, 1))
	if once.Hash() != plain.Hash() || write(t, once) != write(t, plain) {
		t.Error("once is not what an op without the keys runs")
	}
	seen := map[string]bool{plain.Hash(): true}
	for _, keys := range []string{`"repeats": 100, "kernels": 3, `, `"repeats": 3, "kernels": 100, `, `"repeats": 100, `, `"kernels": 100, `} {
		h := read(t, strings.Replace(with, `"repeats": 100, "kernels": 3, `, keys, 1)).Hash()
		if seen[h] {
			t.Errorf("%s: the hash of another graph", keys)
		}
		seen[h] = true
	}
}

func TestJSONErrors(t *testing.T) {
	op := func(rest string) string {
		return `{"format": "placer graph 1", "name": "g", "ops": [
{"name": "x", "kind": "Placeholder", "out": [{"shape": [2]}]},
{"name": "conv1", "kind": "Conv2D"` + rest + `}]}`
	}
	for _, c := range []struct{ name, doc, want string }{
		{"empty", ``, "g.json: line 1, column 1: the document ends early, want an object"},
		{"PNG", "\x89PNG\r\n\x1a\n", "g.json: line 1, column 1: byte 0x89, want an object"},
		{"array", `[]`, "an array, want an object"},
		{"other format", `{"format": "placer graph 2", "ops": []}`, `format is "placer graph 2", want "placer graph 1"`},
		{"machine file", `{"format": "placer machine 1", "models": {}}`, `format is "placer machine 1"`},
		{"no format", `{"ops": []}`, `key "format" is missing`},
		{"no ops", `{"format": "placer graph 1", "ops": []}`, "the graph has no ops"},
		{"trailing", op(``) + "x", "data after the end of the document"},
		{"truncated", op(``)[:100], "g.json: line 2, column 50: op 0 (x): the document ends in a string"},
		{"unknown key", op(`, "flop": 3`), `g.json: line 3, column 37: op 1 (conv1): unknown key "flop"`},
		{"repeated key", op(`, "name": "y"`), `op 1 (conv1): key "name" occurs twice`},
		{"no kind", `{"format": "placer graph 1", "ops": [{"name": "x"}]}`, `op 0 (x): key "kind" is missing`},
		{"same name", op(`}, {"name": "x", "kind": "Relu"`), `g.json: line 3, column 50: op 2: name "x" is empty or that of op 0 too`},
		{"empty name", op(`}, {"name": "", "kind": "Relu"`), `op 2: name "" is empty`},
		{"name of two lines", op(`}, {"name": "a\nb", "kind": "Relu"`), `op 2: name "a\nb" has control characters`},
		{"module of two lines", op(`, "module": "a\nb"`), `op 1 (conv1): name "a\nb" has control characters`},
		{"dangling input", op(`, "in": ["y"]`), `g.json: op 1 (conv1): input 0: op "y" does not exist`},
		{"dangling slot", op(`, "in": ["x", "x:1"]`), `g.json: op 1 (conv1): input 1: op "x" has 1 outputs, want output 1`},
		{"slot of many digits", op(`, "in": ["x:99999999999999999999"]`), `op "x:99999999999999999999" does not exist`},
		{"dangling control", op(`, "control": ["y"]`), `g.json: op 1 (conv1): control: op "y" does not exist`},
		{"dangling forward", op(`, "forward": "y"`), `g.json: op 1 (conv1): forward: op "y" does not exist`},
		{"itself", op(`, "in": ["conv1"], "out": [{"shape": []}]`), "g.json: graph g: cycle through op 1 (conv1): conv1 <- conv1"},
		{"cycle", op(`, "control": ["y"]}, {"name": "y", "kind": "Relu", "control": ["conv1"]`), "cycle through op"},
		{"phase", op(`, "phase": "sideways"`), `unknown phase "sideways"`},
		{"dtype", op(`, "dtype": "f31"`), `op 1 (conv1): unknown element type "f31"`},
		{"negative FLOPs", op(`, "flops": -1`), "-1 FLOPs"},
		{"huge FLOPs", op(`, "flops": 1e300`), "1e+300 FLOPs"},
		{"short gemm", op(`, "gemm": [1, 2, 3]`), "gemm has 3 numbers"},
		{"long gemm", op(`, "gemm": [1, 2, 3, 4, 5]`), "gemm has more"},
		{"empty gemm", op(`, "gemm": [1, 2, 0, 4]`), "0 is out of range, want 1 to"},
		{"negative bytes", op(`, "bytes": -1`), "-1 is out of range, want 0 to"},
		{"huge bytes", op(`, "resident": 36028797018963969`), "36028797018963969 is out of range"},
		{"huge sum", op(`, "resident": 36028797018963968, "workspace": 1`), "op 1 (conv1): byte counts"},
		{"huge dimension", op(`, "out": [{"shape": [9223372036854775807, 2]}]`), "op 1 (conv1): output 0: shape [9223372036854775807 2] is too large"},
		{"dimension beyond int64", op(`, "out": [{"shape": [9223372036854775808]}]`), "is out of range"},
		{"negative dimension", op(`, "out": [{"shape": [-1]}]`), "-1 is out of range"},
		{"large tensor", op(`, "out": [{"shape": [4503599627370496, 4]}]`), "op 1 (conv1)"},
		{"no size", op(`, "out": [{}]`), "output 0 has neither shape nor bytes"},
		{"group", op(`, "group": 2147483648`), "out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := graph.Read([]byte(c.doc), "g.json")
			if err == nil || g != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "g.json: ") {
				t.Errorf("error is not one line that starts with the file's name: %s", s)
			}
		})
	}
}

func TestWriteRefusesWhatJSONCannotHold(t *testing.T) {
	b := graph.NewBuilder("g")
	b.Op(graph.Op{Name: "a\xff", Kind: "NoOp", Forward: graph.None}, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Write(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("error %v, want that the name is not UTF-8", err)
	}
}

// chainGraph is a chain of n ops that look like a training graph's.
func chainGraph(n int) *graph.Graph {
	b := graph.NewBuilder("chain")
	var in []graph.TensorID
	for i := range n {
		op := b.Op(graph.Op{Name: fmt.Sprintf("tower_0/layer_%d/rnn/cell/MatMul_%d", i%8, i), Kind: "MatMul", FLOPs: 1e9, GEMM: graph.GEMM{Batch: 1, M: 128, N: 4096, K: 2048},
			Bytes: graph.Auto, Layer: int32(i%8 + 1), Forward: graph.None}, in, graph.Tensor{Shape: graph.Shape{128, 4096}, Bytes: graph.Auto})
		in = []graph.TensorID{b.Output(op, 0)}
		if i > 9 {
			in = append(in, b.Output(op-9, 0))
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

func BenchmarkRead(b *testing.B) {
	g := chainGraph(84000)
	doc := write(b, g)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		read(b, doc)
	}
}

func BenchmarkWrite(b *testing.B) {
	g := chainGraph(84000)
	for b.Loop() {
		write(b, g)
	}
}

// FuzzGraphJSON: no input panics; what is accepted survives being written.
func FuzzGraphJSON(f *testing.F) {
	for _, doc := range []string{
		write(f, chainGraph(3)),
		`{"format": "placer graph 1", "ops": [{"name": "x", "kind": "Placeholder", "out": [{"bytes": 3, "resident": true}, {"shape": []}]}, {"name": "y:0", "kind": "Relu", "in": ["x:1", "x"], "control": ["x"]}, {"name": "z", "kind": "A", "in": ["x"], "phase": "backward", "forward": "y:0", "group": 1}]}`,
		`{"format": "placer graph 1", "ops": [{"name": "y", "kind": "Relu", "in": ["y"], "out": [{"shape": [1e3]}]}]}`,
		`{"format": "placer graph 1", "ops": [{"name": "y", "kind": "Relu", "out": [{"shape": [9223372036854775807, 9]}]}]}`,
		open,
		`{`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		for _, sizes := range []map[string]int64{nil, {"batch": 7, "seq": 1 << 40}} {
			g, _, err := graph.ReadAt([]byte(doc), "g.json", sizes)
			if err != nil {
				if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "g.json: ") {
					t.Errorf("error is not one located line: %q", s)
				}
				continue
			}
			sameGraph(t, g, read(t, write(t, g)))
		}
	})
}
