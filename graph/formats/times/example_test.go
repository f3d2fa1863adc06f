package times_test

import (
	"fmt"

	"placer/graph"
	"placer/graph/formats/times"
)

func Example() {
	b := graph.NewBuilder("one")
	b.Op(graph.Op{Name: "a", Kind: "Layer", Forward: graph.None}, nil)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	t := &times.Table{GraphHash: g.Hash(), Source: "one.txt", Bandwidth: 1e9, Models: []times.Model{
		{Name: "V100", Count: 2, Memory: 16e9, Seconds: []float64{0.003}},
		{Name: "core", CPU: true, Count: 1, Memory: 64e9, Seconds: []float64{0.03}},
	}}
	if err := t.Check(g); err != nil {
		panic(err)
	}
	m, err := t.Machine()
	if err != nil {
		panic(err)
	}
	c, err := t.For(m)
	if err != nil {
		panic(err)
	}
	for d := range m.Devices {
		fmt.Println(m.Devices[d].Name, c.OpSeconds(0, d))
	}
	// Output:
	// gpu:0 3 ms
	// gpu:1 3 ms
	// cpu:0 30 ms
}
