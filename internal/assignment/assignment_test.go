package assignment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLeast: the least of all assignments, found by trying them.
func TestLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 6; n++ {
		for range 50 {
			cost := make([][]int64, n)
			for i := range cost {
				for range n {
					cost[i] = append(cost[i], rng.Int64N(20)-10)
				}
			}
			sum := func(to []int) (s int64) {
				for i, j := range to {
					s += cost[i][j]
				}
				return s
			}
			least := int64(math.MaxInt64)
			var try func(to []int)
			try = func(to []int) {
				if len(to) == n {
					least = min(least, sum(to))
					return
				}
				for j := range n {
					if !slices.Contains(to, j) {
						try(append(slices.Clip(to), j))
					}
				}
			}
			try(nil)
			to := Least(cost)
			if got := sum(to); got != least || len(slices.Compact(slices.Sorted(slices.Values(to)))) != n {
				t.Fatalf("%v: %v costs %d, the least is %d", cost, to, got, least)
			}
		}
	}
}
