package workloads_test

import (
	"fmt"

	"placer/workloads"
)

func Example() {
	g, err := workloads.Build("gnmt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d ops, %.0f M parameters\n", g.Name(), g.NumOps(), float64(g.Params())/1e6)

	// A sibling of another size, as training data.
	if g, err = workloads.Build("gnmt:layers=3,source=12,target=12"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d ops\n", g.Name(), g.NumOps())

	_, err = workloads.Build("gnmt3")
	fmt.Println(err)
	// Output:
	// gnmt2: 28138 ops, 155 M parameters
	// gnmt:layers=3,source=12,target=12: 11440 ops
	// unknown workload "gnmt3", did you mean gnmt2, gnmt4, gnmt8?
}
