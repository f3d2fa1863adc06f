package strategy

import (
	"os"
	"slices"
	"testing"

	"placer/graph"
)

func TestPiece(t *testing.T) {
	holds := map[string]bool{"": true, "model": true, "model.layers": true}
	for path, want := range map[string]string{
		"model.layers.0.attn.q":  "model.layers.0",
		"model.layers.10":        "model.layers.10",
		"model.layers.0.moe.3.w": "model.layers.0", // the outermost list
		"0.attention":            "0",
		"model.norm":             "model.norm",
		"model.norm.inner":       "model.norm",
		"lm_head":                "lm_head",
		"layer1":                 "layer1", // no number of its own
		"model":                  "",
		"model.layers":           "",
		"":                       "",
	} {
		got, ok := piece(path, holds)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// chainOf is a forward pass of ops one after another, each in a module and reading what the ops before
// it, by number, make.
func chainOf(t *testing.T, modules []string, reads [][]int) *Model {
	t.Helper()
	b := graph.NewBuilder("modules")
	ids := []graph.OpID{b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Bytes: 4})}
	for k, m := range modules {
		var in []graph.TensorID
		for _, r := range reads[k] {
			in = append(in, b.Output(ids[r], 0))
		}
		ids = append(ids, b.Op(graph.Op{Name: string(rune('a' + k)), Kind: "Relu", Module: m, Forward: graph.None}, in, graph.Tensor{Bytes: 4}))
	}
	return modelOf(t, b)
}

// modelOf returns the model of one micro-batch that b has built.
func modelOf(t *testing.T, b *graph.Builder) *Model {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBlocksOfModules(t *testing.T) {
	// What lies between modules goes with the last that it reads, a source with its first reader.
	m := chainOf(t, []string{"embed", "h.0.attn", "h.0", "h.1", "", "head", "tail"}, [][]int{{0}, {1}, {2}, {3}, {4, 1}, {5}, {6}})
	b := NewBlocks(m, make([]float64, m.Micro.NumOps()))
	if want := []int32{0, 0, 1, 1, 2, 2, 3, 4}; b.Len() != 5 || !slices.Equal(b.of, want) {
		t.Errorf("%d blocks, %v, want %v", b.Len(), b.of, want)
	}
	// A module that runs again behind a later one is no block.
	m = chainOf(t, []string{"a", "b", "a", "c"}, [][]int{{0}, {1}, {2}, {3}})
	if b = (&Blocks{of: make([]int32, m.Micro.NumOps()), m: m}); b.modules() {
		t.Errorf("modules that run in turns are blocks: %v", b.of)
	}
}

// TestCutOfCapturedStep: no stage of a captured decoder has a part of a module.
func TestCutOfCapturedStep(t *testing.T) {
	const file = "../../placer/strategies/testdata/torch_gpt2.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := graph.ReadAt(data, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, b := FindModules(m), NewBlocks(m, make([]float64, g.NumOps()))
	if want := []string{"wte", "wpe", "h.0", "h.1", "ln_f", "lm_head"}; !slices.Equal(x.Paths, want) || b.Len() != len(want) {
		t.Errorf("modules %v, %d blocks, want %v", x.Paths, b.Len(), want)
	}
	for i, k := range x.Of {
		if k >= 0 && b.of[i] != k {
			t.Errorf("op %s of module %s is in block %d", g.Op(graph.OpID(i)).Name, x.Paths[k], b.of[i])
		}
	}
}
