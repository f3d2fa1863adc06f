package pipedreamplan_test

import (
	"fmt"

	"placer/baselines/partition/pipedreamplan"
)

// Three layers on four workers: the last has many parameters, so it is not
// replicated.
func ExampleSolve() {
	c := &pipedreamplan.Chain{Seconds: []float64{3, 3, 1}, Parameters: []float64{1, 1, 400}, Crossing: []float64{40, 4, 0}}
	p, err := pipedreamplan.Solve(c, []pipedreamplan.Level{{Width: 4, Bandwidth: 100}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, a minibatch every %g s\n", pipedreamplan.Shape(p.Stages), p.Seconds)
	// Output:
	// 3-1, a minibatch every 2 s
}
