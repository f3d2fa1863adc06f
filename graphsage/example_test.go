package graphsage_test

import (
	"fmt"

	"placer/graphsage"
)

func ExampleNeighbours_Limit() {
	lists := &graphsage.Neighbours{Start: []int32{0, 3, 4}, Index: []int32{0, 1, 1, 0}}
	limited := lists.Limit(2)
	fmt.Println(limited.Start, limited.Index)
	// Output: [0 2 3] [0 1 0]
}
