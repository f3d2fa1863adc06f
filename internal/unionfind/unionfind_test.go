package unionfind_test

import (
	"fmt"

	"placer/internal/unionfind"
)

func Example() {
	s := unionfind.New(6)
	for _, p := range [][2]int32{{4, 2}, {5, 4}, {1, 3}} {
		s.Join(p[0], p[1])
	}
	for i := range int32(6) {
		fmt.Print(s.Root(i), " ")
	}
	// Output: 0 1 2 1 2 2
}
