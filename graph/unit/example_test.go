package unit_test

import (
	"fmt"

	"placer/graph"
	"placer/graph/unit"
)

// Two steps of a recurrent layer: the product of each step is a cell, the weight
// they share makes them one chain.
func Example() {
	b := graph.NewBuilder("two steps")
	out := func(kind graph.Kind, name string, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, Bytes: graph.Auto, Forward: graph.None}, in, graph.Tensor{Shape: graph.Shape{256}, Bytes: graph.Auto}), 0)
	}
	w := out("VariableV2", "w")
	h := out("Placeholder", "x")
	for step := range 2 {
		h = out("Tanh", fmt.Sprint("tanh", step), out("MatMul", fmt.Sprint("product", step), h, w))
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	seconds := []float64{0, 0, 1, 0.1, 1, 0.1}
	units, err := unit.Find(g, seconds)
	if err != nil {
		panic(err)
	}
	for _, l := range []unit.Level{unit.Op, unit.Cell, unit.Chain} {
		fmt.Println(l, units.Levels[l].Ops)
	}
	// Output:
	// op [[0] [1] [2] [3] [4] [5]]
	// cell [[0] [1 2 3] [4 5]]
	// chain [[0] [1 2 3 4 5]]
}
