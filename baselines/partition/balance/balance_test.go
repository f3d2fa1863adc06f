package balance_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/partition/balance"
	"placer/sim/throughput/throughputtest"
)

// TestAgainstExhaustiveSearch: on graphs of up to 8 ops the search finds the
// optimum from any start.
func TestAgainstExhaustiveSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	solved, missed := 0, 0
	for k := range 150 {
		_, x := throughputtest.Instance(t, rng, 1+rng.IntN(8))
		best := throughputtest.Optimum(x, nil)
		c := balance.Default()
		c.Moves, c.Seed = 20000, uint64(k)
		start := make([]uint8, x.NumBlocks())
		block, seconds := balance.Search(context.Background(), x, start, c, nil)
		j := x.Evaluate(block)
		if !math.IsInf(seconds, 1) && (math.Abs(j.Seconds-seconds) > 1e-9 || j.Overflow > 0) {
			t.Fatalf("case %d: claims %v, judged %v with %d bytes too many", k, seconds, j.Seconds, j.Overflow)
		}
		if seconds < best-1e-9 {
			t.Fatalf("case %d: %v is below the optimum %v", k, seconds, best)
		}
		if math.IsInf(best, 1) {
			continue
		}
		solved++
		if seconds > best+1e-9 {
			missed++
		}
	}
	if solved < 80 || missed > 0 {
		t.Errorf("missed the optimum %d times in %d", missed, solved)
	}
}

func TestSameSeedSamePlacement(t *testing.T) {
	_, x := throughputtest.Instance(t, rand.New(rand.NewPCG(11, 12)), 30)
	c := balance.Default()
	c.Moves = 20000
	a, _ := balance.Search(context.Background(), x, make([]uint8, x.NumBlocks()), c, nil)
	b, _ := balance.Search(context.Background(), x, make([]uint8, x.NumBlocks()), c, nil)
	if !slices.Equal(a, b) {
		t.Error("two runs of one seed differ")
	}
}
