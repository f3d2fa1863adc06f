package throughput_test

import (
	"context"
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/formats/times"
	"placer/sim/throughput"
)

// Three layers on two accelerators: the second is the larger, and the tensor
// between the stages is paid for on both sides.
func Example() {
	b := graph.NewBuilder("three")
	var in []graph.TensorID
	for _, name := range []string{"a", "b", "c"} {
		op := b.Op(graph.Op{Name: name, Kind: "Layer", Resident: 100, Forward: graph.None}, in, graph.Tensor{Bytes: 8, Resident: true})
		in = []graph.TensorID{b.Output(op, 0)}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	t := &times.Table{
		GraphHash: g.Hash(), Source: "example", Bandwidth: 1, Transfer: []float64{0.5, 0.5, 0},
		Models: []times.Model{{Name: "accelerator", Count: 2, Memory: 200, Seconds: []float64{1, 2, 1}}},
	}
	m, err := t.Machine()
	if err != nil {
		panic(err)
	}
	s, err := throughput.FromTable(g, m, t)
	if err != nil {
		panic(err)
	}
	x, err := throughput.New(context.Background(), s)
	if err != nil {
		panic(err)
	}
	j := x.Evaluate([]uint8{0, 0, 1})
	for d, l := range j.Loads {
		fmt.Printf("%s: %.1f s of work, %.1f s of transfers, %d bytes\n", m.Devices[d].Name, l.Compute, l.Communication, l.Bytes)
	}
	fmt.Printf("a sample every %.1f s, never less than %.2f s\n", j.Seconds, x.Bound(context.Background(), j.Seconds, math.MaxInt))
	// Output:
	// gpu:0: 3.0 s of work, 0.5 s of transfers, 200 bytes
	// gpu:1: 1.0 s of work, 0.5 s of transfers, 100 bytes
	// a sample every 3.5 s, never less than 3.00 s
}
