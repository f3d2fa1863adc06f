package contiguous_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"placer/baselines/partition/contiguous"
	"placer/sim/throughput/throughputtest"
)

func Example() {
	s, err := throughputtest.Random(rand.New(rand.NewPCG(4, 1)), 14)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := contiguous.Solve(context.Background(), s, contiguous.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d blocks, %d downsets: largest load %.0f s, optimal %v\n", r.Blocks, r.Downsets, r.Seconds, r.Optimal)
	// Output:
	// 11 blocks, 25 downsets: largest load 164 s, optimal true
}
