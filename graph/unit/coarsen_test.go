package unit

import (
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/units"
)

// checkCoarsened compares a coarsened graph with what it was made of.
func checkCoarsened(t rapid.TB, g *graph.Graph, p *Partition, c *Coarsened) {
	if len(c.Of) != g.NumOps() || len(c.Ops) != c.Graph.NumOps() {
		t.Fatalf("%d ops in %d nodes, want %d ops in %d", len(c.Of), len(c.Ops), g.NumOps(), c.Graph.NumOps())
	}
	for v, ops := range c.Ops {
		for _, i := range ops {
			if c.Of[i] != int32(v) || p.Of[i] != c.Unit(graph.OpID(v)) {
				t.Errorf("node %d of unit %d lists op %d of node %d and unit %d", v, c.Unit(graph.OpID(v)), i, c.Of[i], p.Of[i])
			}
		}
	}
	if a, b := g.Resident(), c.Graph.Resident(); a != b {
		t.Errorf("%d resident bytes, want %d", b, a)
	}
	// What crosses between units is there, constants aside.
	reaches := func(from, to int32) bool {
		first, end := c.Graph.Outputs(graph.OpID(from))
		for x := first; x < end; x++ {
			for _, v := range c.Graph.Consumers(x) {
				if int32(v) == to {
					return true
				}
			}
		}
		return false
	}
	for i := range g.NumOps() {
		for _, x := range g.Inputs(graph.OpID(i)) {
			q := g.Tensor(x).Producer
			if everywhere(g, q) {
				continue
			}
			if a, b := c.Of[q], c.Of[i]; a != b && !reaches(a, b) {
				t.Errorf("the edge from op %d to op %d is lost between nodes %d and %d", q, i, a, b)
			}
		}
	}
}

func TestCoarsenionOfRecurrentUnits(t *testing.T) {
	const layers, steps = 3, 20
	g, _, _ := recurrent(layers, steps, true)
	h := find(t, g)
	p := h.Levels[Cell]
	c, err := Coarsen(g, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkCoarsened(t, g, p, c)
	// A step of a layer and direction is one node. A variable is one for itself, one
	// for the gradient of each step, one for their sum and the update.
	if most := 2*layers*steps + layers*(steps+2) + 3; c.Graph.NumOps() > most {
		t.Errorf("%d nodes, want at most %d", c.Graph.NumOps(), most)
	}
	var sum, want float64
	for _, x := range c.Sum(ones(g)) {
		sum += x
	}
	for _, x := range ones(g) {
		want += x
	}
	if diff := sum - want; diff > 1e-12 || diff < -1e-12 {
		t.Errorf("nodes take %v s together, ops %v s", sum, want)
	}
}

func TestCoarsenionOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		label := make([]int32, g.NumOps())
		for i := range label {
			label[i] = int32(rapid.IntRange(0, 5).Draw(t, "unit"))
		}
		p := partition(compact(label))
		for _, coarsen := range []func(*graph.Graph, *Partition, units.Bytes) (*Coarsened, error){Coarsen, CoarsenFinely} {
			c, err := coarsen(g, p, 10)
			if err != nil {
				t.Fatal(err)
			}
			checkCoarsened(t, g, p, c)
		}
	})
}

// TestCoarsenFinely: what differs in what it waits for or in what waits for it is apart.
func TestCoarsenFinely(t *testing.T) {
	b := newBuilder()
	op := func(in ...graph.TensorID) graph.TensorID { return b.op("MatMul", 4, in...) }
	x0, x1 := op(), op() // of units 0 and 1
	op(x0)               // of unit 2, as the next three
	op(x1)               //
	op(x0, x1)           //
	op(op(x0))           // and the reader of unit 3
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := partition([]int32{0, 1, 2, 2, 2, 2, 3})
	for _, test := range []struct {
		coarsen func(*graph.Graph, *Partition, units.Bytes) (*Coarsened, error)
		want    int
	}{{Coarsen, 4}, {CoarsenFinely, 7}} {
		c, err := test.coarsen(g, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkCoarsened(t, g, p, c)
		if c.Graph.NumOps() != test.want {
			t.Errorf("%d nodes, want %d", c.Graph.NumOps(), test.want)
		}
	}
}

// compact renumbers labels densely.
func compact(label []int32) []int32 {
	number := map[int32]int32{}
	out := make([]int32, len(label))
	for i, l := range label {
		x, ok := number[l]
		if !ok {
			x = int32(len(number))
			number[l] = x
		}
		out[i] = x
	}
	return out
}
