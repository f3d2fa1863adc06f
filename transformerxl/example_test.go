package transformerxl_test

import (
	"fmt"

	"placer/transformerxl"
)

func ExampleSegments() {
	// Two graphs of 5 and 2 rows, segments of 4 rows, each with the 4 before it.
	fmt.Println(transformerxl.Segments([]int32{0, 5, 7}, 4, 4))
	// Output: [{0 0 4} {0 4 5} {5 5 7}]
}
