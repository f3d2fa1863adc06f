package problem_test

import (
	"context"
	"fmt"

	"placer/baselines/rules"
	"placer/placer/problem"
)

// The expert's placement of a two-layer network, and what the simulator makes of it.
func ExampleWorkload() {
	whole, err := problem.Workload("rnnlm2", "p100", 2, problem.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &whole.Problem
	o, err := rules.Expert().Place(context.Background(), p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d ops, %.1f ms\n", len(o.Device), o.Score.Value*1e3)
	// Output: 9539 ops, 147.4 ms
}
