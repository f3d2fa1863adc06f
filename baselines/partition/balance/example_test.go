package balance_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"placer/baselines/partition/balance"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

func Example() {
	s, err := throughputtest.Random(rand.New(rand.NewPCG(2, 2)), 12)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := throughput.New(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := balance.Default()
	c.Moves = 10_000
	_, seconds := balance.Search(context.Background(), x, make([]uint8, x.NumBlocks()), c, nil)
	fmt.Printf("largest load %.0f s, at least %.0f s for any placement\n", seconds, x.Bound(context.Background(), seconds, math.MaxInt))
	// Output:
	// largest load 63 s, at least 59 s for any placement
}
