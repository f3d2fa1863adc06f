package features

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
)

// chain builds three ops in a row, 1 KiB between them, and a variable that the
// second reads.
func chain(t *testing.T) (*graph.Graph, *unit.Partition, []float64) {
	t.Helper()
	b := graph.NewBuilder("chain")
	shape := graph.Shape{16, 16}
	out := graph.Tensor{Shape: shape, Bytes: graph.Auto}
	w := b.Op(graph.Op{Name: "w", Kind: "VariableV2", Params: 256, Resident: 1024}, nil, graph.Tensor{Shape: shape, Bytes: graph.Auto, Resident: true})
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder"}, nil, out)
	y := b.Op(graph.Op{Name: "y", Kind: "MatMul", FLOPs: 8192}, []graph.TensorID{b.Output(x, 0), b.Output(w, 0)}, out)
	b.Op(graph.Op{Name: "z", Kind: "Relu", FLOPs: 256}, []graph.TensorID{b.Output(y, 0)}, out)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := &unit.Partition{Of: []int32{0, 1, 2, 3}, Ops: [][]graph.OpID{{0}, {1}, {2}, {3}}}
	return g, p, []float64{1, 2, 4, 1}
}

func TestColumns(t *testing.T) {
	g, p, seconds := chain(t)
	m, err := hw.Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	table := Build(Source{g, p, p, seconds, m}, Default(), nil)
	if got, want := len(table.X), p.NumUnits()*len(table.Names); got != want {
		t.Fatalf("%d values, want %d", got, want)
	}
	if Default().NumColumns() != len(table.Names) {
		t.Errorf("%d columns announced, %d built", Default().NumColumns(), len(table.Names))
	}
	value := func(u int, name string) float64 {
		k := slices.Index(table.Names, name)
		if k < 0 {
			t.Fatalf("no column %s", name)
		}
		return float64(table.X[u*len(table.Names)+k])
	}
	for _, c := range []struct {
		unit int
		name string
		want float64
	}{
		{2, "time_share", 4.0 / 8 * 4 / 4}, // 4 of 8 seconds, 4 units
		{2, "top_min", 2 * 2.0 / 7},        // x before it; the longest path takes 7
		{2, "bottom_max", 2 * 5.0 / 7},
		{2, "slack", 0},
		{0, "variable", 1},
		{2, "variable", 0},
		{2, "variable_order", 2 * 0.5}, // reads the only variable
		{0, "class_variable", math.Log1p(1) / 4},
		{2, "class_gemm", math.Log1p(1) / 4},
		{2, "in_degree", math.Log1p(2) / 4},
		{3, "out_degree", 0},
		{1, "devices", 0.25},
	} {
		if got := value(c.unit, c.name); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("unit %d, %s is %g, want %g", c.unit, c.name, got, c.want)
		}
	}
}

// TestBoundedColumns: whatever the graph, columns stay finite and within the range
// that networks take well.
func TestBoundedColumns(t *testing.T) {
	g, p, _ := chain(t)
	m, err := hw.Take("p100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range [][]float64{{1e-9, 1e-9, 1e-9, 1e-9}, {1e6, 1e-9, 1e3, 1}} {
		for i, x := range Build(Source{g, p, p, seconds, m}, Default(), nil).X {
			if !(math.Abs(float64(x)) <= 4) {
				t.Errorf("value %d is %g", i, x)
			}
		}
	}
}

// TestIdentity: identity columns come from the stream alone.
func TestIdentity(t *testing.T) {
	g, p, seconds := chain(t)
	m, err := hw.Take("p100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Identity: 3}
	one := Build(Source{g, p, p, seconds, m}, c, rand.New(rand.NewPCG(1, 1)))
	two := Build(Source{g, p, p, seconds, m}, c, rand.New(rand.NewPCG(1, 1)))
	other := Build(Source{g, p, p, seconds, m}, c, rand.New(rand.NewPCG(2, 1)))
	if !slices.Equal(one.X, two.X) || slices.Equal(one.X, other.X) {
		t.Error("identity columns do not follow the seed")
	}
}

func TestAdjacency(t *testing.T) {
	g, p, _ := chain(t)
	n := Adjacency(g, p, 5)
	want := [][]int32{{2}, {2}, {0, 1, 3}, {2}}
	for u := range want {
		if got := n.Unit[n.Start[u]:n.Start[u+1]]; !slices.Equal(got, want[u]) {
			t.Errorf("unit %d has neighbours %v, want %v", u, got, want[u])
		}
	}
	if got := Adjacency(g, p, 1); len(got.Unit) != 4 {
		t.Errorf("%d neighbours with at most one each, want 4", len(got.Unit))
	}
}
