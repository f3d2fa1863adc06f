package sim

import (
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/plan"
)

// TestCriticalPathEnds: behind an op of 1e17 s those of 1 s end when they start. The
// walk cannot tell in which order they ran, and must not go in a circle.
func TestCriticalPathEnds(t *testing.T) {
	b := graph.NewBuilder("long")
	out := graph.Tensor{Bytes: 4}
	source := b.Op(graph.Op{Name: "source", Kind: "MatMul"}, nil, out)
	b.Op(graph.Op{Name: "long", Kind: "MatMul"}, nil, out)
	from := []graph.TensorID{b.Output(source, 0)}
	add := b.Op(graph.Op{Name: "add", Kind: "Add"}, from, out)
	other := b.Op(graph.Op{Name: "other", Kind: "MatMul"}, from, out)
	b.Op(graph.Op{Name: "sum", Kind: "Add"}, []graph.TensorID{b.Output(add, 0), b.Output(other, 0)}, out)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(g, randomMachine(rand.New(rand.NewPCG(1, 1)), 1), costTable{{1, 1e17, 20, 1, 20}}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: make([]uint8, 5), Priority: []int32{0, 1, 3, 2, 4}, Fusion: []uint8{0, 0, 1, 0, 1}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Kernels != 4 || len(r.CriticalPath) > 5 {
		t.Errorf("%d kernels, %d steps, want 4 and at most 5", r.Kernels, len(r.CriticalPath))
	}
}
