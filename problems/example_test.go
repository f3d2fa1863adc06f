package problems_test

import (
	"context"
	"fmt"

	"placer/baselines/human"
	"placer/problems"
)

// The expert's placement of a two-layer network, and what the simulator makes of it.
func ExampleWorkload() {
	p, err := problems.Workload("rnnlm2", "p100", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	o, err := human.Placer{}.Place(context.Background(), p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d ops, %.1f ms\n", len(o.Device), o.Score.Seconds*1e3)
	// Output: 9539 ops, 147.4 ms
}
