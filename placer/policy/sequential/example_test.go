package sequential_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/placer/policy/sequential"
)

// A policy of random weights places a graph on two GPUs; a pretrained one comes
// from package pretrained.
func Example() {
	p, err := sequential.Case{Workload: "rnnlm:layers=2,unroll=3", GPU: "p100", Devices: 2}.Problem()
	if err != nil {
		panic(err)
	}
	policy, err := sequential.NewPolicy(sequential.DefaultConfig(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		panic(err)
	}
	p.Budget.Evaluations = 4
	o, err := sequential.Placer{Policy: policy}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(o.Device) == p.Graph.NumOps(), o.Score.Feasible(), o.Evaluations)
	// Output: true true 4
}
