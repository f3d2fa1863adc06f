package reinforce_test

import (
	"fmt"
	"slices"

	"testing"

	"placer/baselines/learned/reinforce"
	"placer/graph"
	"placer/graph/unit"
	"placer/nn"
	"placer/plan"
)

// diamond is a: MatMul, b: Add of a, c: MatMul of a, d: Add of b and c, each an
// entity.
func diamond() (*graph.Graph, *unit.Partition) {
	b := graph.NewBuilder("diamond")
	op := func(name string, kind graph.Kind, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, Forward: graph.None}, in, graph.Tensor{Bytes: 100}), 0)
	}
	a := op("a", "MatMul")
	x, y := op("b", "Add", a), op("c", "MatMul", a)
	op("d", "Add", x, y)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	p := &unit.Partition{}
	for i := range g.NumOps() {
		p.Of = append(p.Of, int32(i))
		p.Ops = append(p.Ops, []graph.OpID{graph.OpID(i)})
	}
	return g, p
}

// TestEmbed: the columns of two groups, {a, b} and {c, d}, and of an empty one.
func TestEmbed(t *testing.T) {
	g, p := diamond()
	e := reinforce.NewEmbedder(g, p)
	const groups = 3
	x := nn.NewMat(groups, e.Columns(groups))
	for i := range x.V {
		x.V[i] = 9 // is cleared
	}
	e.Embed([]int32{0, 0, 1, 1}, x)
	const kinds = 2 // MatMul and Add
	for u, want := range [][]float32{{0.5, 0.5}, {0.5, 0.5}, {0, 0}} {
		if got := x.Row(u)[:kinds]; !slices.Equal(got, want) {
			t.Errorf("kinds of group %d are %v, want %v", u, got, want)
		}
	}
	// c reads a, and d reads b: two from group 0 to group 1, over the largest plus
	// one. Columns: to group 0, 1, 2, then from group 0, 1, 2.
	for u, want := range [][]float32{{0, 2. / 3, 0, 0, 0, 0}, {0, 0, 0, 2. / 3, 0, 0}, {0, 0, 0, 0, 0, 0}} {
		if got := x.Row(u)[x.D-2*groups:]; !slices.Equal(got, want) {
			t.Errorf("adjacency of group %d is %v, want %v", u, got, want)
		}
	}
	if size := x.Row(0)[kinds]; size <= 0 || size != x.Row(1)[kinds] || x.Row(2)[kinds] != 0 {
		t.Errorf("sizes are %g, %g and %g", size, x.Row(1)[kinds], x.Row(2)[kinds])
	}
}

// The baseline starts at the failing signal and moves to what placements cost.
func Example() {
	s := reinforce.NewSignal(reinforce.SignalConfig{Failing: 2, Decay: 0.5}, 1)
	advantage := make([]float32, 2)
	for range 3 {
		s.Advantages([]plan.Score{{Value: 1}, {Value: 0.25}}, advantage)
		fmt.Printf("%.3f, baseline then %.3f\n", advantage, s.Baseline())
	}
	// Output:
	// [1.000 1.500], baseline then 1.375
	// [0.375 0.875], baseline then 1.062
	// [0.062 0.562], baseline then 0.906
}
