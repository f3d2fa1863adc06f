package unit_test

import (
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/workloads"
)

func alike(g *graph.Graph) []float64 {
	s := make([]float64, g.NumOps())
	for i := range s {
		s[i] = 1
	}
	return s
}

// A decoder's step in four micro-batches folds to blocks that have all of a variable's
// uses, and to parts of which none has the passes of two micro-batches.
func TestFoldMicroBatches(t *testing.T) {
	const micro = 4
	g, err := workloads.Build("llama:layers=6,hidden=64,heads=4,kv_heads=4,ffn=128,vocab=100,seq=16,batch=4,micro_batches=4")
	if err != nil {
		t.Fatal(err)
	}
	f, err := unit.Fold(g, alike(g), 1.0/24, 64)
	if err != nil {
		t.Fatal(err)
	}
	if f.Blocks < 12 || f.Blocks > 60 {
		t.Errorf("%d blocks", f.Blocks)
	}
	layersOf := make([]map[int32]bool, f.Blocks)
	microOf := make([]map[byte]bool, f.Parts.NumUnits())
	for i, u := range f.Parts.Of {
		o := g.Op(graph.OpID(i))
		b := f.Block[u]
		if layersOf[b] == nil {
			layersOf[b] = map[int32]bool{}
		}
		if o.Phase == graph.Forward && o.Layer > 0 {
			layersOf[b][o.Layer] = true
		}
		if o.Phase == graph.Forward && (o.Kind == "MatMul" || o.Kind == "Softmax") {
			if microOf[u] == nil {
				microOf[u] = map[byte]bool{}
			}
			microOf[u][o.Name[5]] = true
		}
	}
	for b, layers := range layersOf {
		if len(layers) > 3 {
			t.Errorf("block %d has ops of %d layers", b, len(layers))
		}
	}
	for u, ms := range microOf {
		if len(ms) > 1 {
			t.Errorf("part %d of block %d has the forward pass of %d micro-batches", u, f.Block[u], len(ms))
		}
	}
	c, err := unit.Coarsen(g, f.Parts, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Graph.NumOps(); n < 2*micro*f.Blocks/2 || n > 12*micro*f.Blocks {
		t.Errorf("%d nodes of %d blocks and %d micro-batches", n, f.Blocks, micro)
	}
	h := f.Units(c)
	if err := h.Check(c.Graph); err != nil {
		t.Error(err)
	}
	if n := h.Levels[unit.Cell].NumUnits(); n != f.Blocks {
		t.Errorf("%d units of %d blocks", n, f.Blocks)
	}
}

// A co-location group stays in one block.
func TestFoldKeepsGroups(t *testing.T) {
	g, err := workloads.Build("gnmt:layers=2,source=4,target=4,hidden=32,vocab=100")
	if err != nil {
		t.Fatal(err)
	}
	f, err := unit.Fold(g, alike(g), 1.0/100, 3)
	if err != nil {
		t.Fatal(err)
	}
	home := map[int32]int32{}
	for i, u := range f.Parts.Of {
		k := g.Op(graph.OpID(i)).Group
		if k == 0 {
			continue
		}
		if b, ok := home[k]; ok && b != f.Block[u] {
			t.Fatalf("co-location group %d is in blocks %d and %d", k, b, f.Block[u])
		}
		home[k] = f.Block[u]
	}
	if len(home) == 0 {
		t.Error("no groups: the test shows nothing")
	}
}

// What sums a variable's gradient over micro-batches belongs to the variable, though
// clipping reads its norm.
func TestGradientBuffersAreTheirVariables(t *testing.T) {
	g, err := workloads.Build("llama:layers=4,hidden=64,heads=4,kv_heads=4,ffn=128,vocab=100,seq=16,batch=3,micro_batches=3")
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, alike(g))
	if err != nil {
		t.Fatal(err)
	}
	buffers := 0
	for u, ops := range h.Levels[unit.Cell].Ops {
		variable, sum, layers := false, false, map[int32]bool{}
		for _, i := range ops {
			o := g.Op(i)
			variable = variable || o.Params > 0
			if o.Kind == "AssignAdd" {
				sum = true
				layers[o.Layer] = true
			}
		}
		if sum {
			buffers++
			if !variable || len(layers) > 1 {
				t.Errorf("cell %d of %d ops sums gradients of %d layers, with their variable: %v", u, len(ops), len(layers), variable)
			}
		}
	}
	if buffers < 4 {
		t.Errorf("%d cells sum gradients", buffers)
	}
}
