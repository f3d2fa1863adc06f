package transfer_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/placer/transfer"
)

// A policy of random weights places a graph on two GPUs; a pretrained one comes
// from package pretrained.
func Example() {
	p, err := transfer.Case{Workload: "rnnlm:layers=2,unroll=3", GPU: "p100", Devices: 2}.Problem()
	if err != nil {
		panic(err)
	}
	policy, err := transfer.NewPolicy(transfer.DefaultConfig(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		panic(err)
	}
	o, err := transfer.Placer{Policy: policy, Samples: 4}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(o.Device) == p.Graph.NumOps(), o.Score.Feasible(), o.Evaluations)
	// Output: true true 4
}
