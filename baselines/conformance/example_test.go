package conformance_test

import (
	"context"
	"fmt"

	"placer/baselines/conformance"
	"placer/baselines/listsched"
	"placer/baselines/rules"
	"placer/graph/unit"
	"placer/plan"
)

// Every method is a plan.Placer and gets the same problem.
func Example() {
	c := conformance.Cases()[8] // a training step on two devices
	for _, m := range []plan.Placer{rules.Single(), rules.TensorFlowDefault(), rules.Expert(), rules.RoundRobin(unit.Op), listsched.HEFT()} {
		p, err := c.Problem()
		if err != nil {
			panic(err)
		}
		out, err := m.Place(context.Background(), p)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-10s %.0f us\n", m.Name(), 1e6*out.Score.Value)
	}
	// Output:
	// single     490 us
	// tf-default 490 us
	// human      363 us
	// roundrobin 347 us
	// heft       408 us
}
