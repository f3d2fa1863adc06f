package partition

import (
	"fmt"

	"placer/baselines/conformance"
)

// What Scotch is told of two devices, the second of which is slower.
func Example() {
	c := conformance.Cases()[4] // groups, three devices of speeds 1, 1/1.5 and 1/2
	p, err := c.Problem()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", architecture(p, []uint8{0, 2}))
	// Output:
	// deco
	// 0
	// 2 3
	// 0 6667 2
	// 1 3333 3
	// 1
}
