package formats_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"placer/graph"
	"placer/plan/formats"
)

// flax is a graph as Flax's names have it: blocks with a number in their names, weights and
// an optimizer's state under JAX's names of the arguments.
func flax(t testing.TB) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("flax")
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{8, 8}}), 0)
	variable := func(name string, phase graph.Phase) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: "VariableV2", Phase: phase, Resident: 256, Params: 64, Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{8, 8}, Resident: true}), 0)
	}
	product := func(name, module string, a, w graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: "MatMul", GEMM: graph.GEMM{Batch: 1, M: 8, N: 8, K: 8}, FLOPs: 1024, Bytes: graph.Auto, Module: module, Forward: graph.None}, []graph.TensorID{a, w}, graph.Tensor{Shape: graph.Shape{8, 8}}), 0)
	}
	for _, l := range []string{"h_0", "h_1"} {
		for _, k := range []string{"fc", "proj"} {
			x = product(l+k, "GPT."+l+"."+k, x, variable("params['"+l+"']['"+k+"']['kernel']", graph.Forward))
		}
		b.Op(graph.Op{Name: "decay" + l, Kind: "Mul", Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{x, variable("st[0].mu['"+l+"']['fc']['kernel']", graph.Update)}, graph.Tensor{Shape: graph.Shape{8, 8}})
	}
	product("head", "GPT.head", x, variable("params['head']['kernel']", graph.Forward))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Blocks of Flax are parts, and each argument that stays on a device has a line of its own.
func TestFlax(t *testing.T) {
	g, m := flax(t), machine(t, 2)
	parts, err := formats.FindParts(g)
	if err != nil {
		t.Fatal(err)
	}
	if want := []formats.Part{{"GPT.h_0", 0}, {"GPT.h_1", 1}, {"GPT.head", -1}}; !slices.Equal(parts.List, want) {
		t.Fatalf("parts %v", parts.List)
	}
	s := split(t, g, m, 0, 1)
	target, err := formats.Find("jax")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := target.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	var f struct{ Device map[string]int }
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"GPT.h_0": 0, "GPT.h_1": 1, "GPT.head": 1, "params['h_0']['fc']['kernel']": 0, "params['h_1']['proj']['kernel']": 1, "params['head']['kernel']": 1, "st[0].mu['h_0']['fc']['kernel']": 0, "st[0].mu['h_1']['fc']['kernel']": 1} {
		if got, ok := f.Device[path]; !ok || got != want {
			t.Errorf("%s is on %d (%v), want %d", path, got, ok, want)
		}
	}
	p, err := formats.Read(b.Bytes(), "f", g, m)
	if err != nil || !slices.Equal(p.Device, s.Parts.Spread(g, s.Device)) {
		t.Errorf("read back: %v", err)
	}
}
