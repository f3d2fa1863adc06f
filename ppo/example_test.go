package ppo_test

import (
	"fmt"

	"placer/ppo"
)

func ExampleSchedule() {
	s := ppo.Schedule{Peak: 4e-4, Warmup: 4, Total: 8}
	for i := range 9 {
		fmt.Printf("%.0e ", s.At(i))
	}
	fmt.Println()
	// Output: 1e-04 2e-04 3e-04 4e-04 4e-04 3e-04 2e-04 1e-04 0e+00
}
