package ppo_test

import (
	"fmt"

	"placer/ppo"
)

// Rewards of steps of 0.25 s, 1 s and 4 s, where the baseline takes 1 s.
func ExampleReward() {
	for _, seconds := range []float64{0.25, 1, 4} {
		fmt.Println(ppo.Reward(seconds, 1))
	}
	// Output:
	// -0.5
	// -1
	// -2
}
