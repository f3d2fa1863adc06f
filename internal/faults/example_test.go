package faults_test

import (
	"errors"
	"fmt"

	"placer/internal/faults"
)

func Example() {
	check := func(width, rounds int) error {
		var all faults.List
		all.If(width < 1, "width is %d, want at least 1", width)
		all.If(rounds < 0, "rounds is %d, want at least 0", rounds)
		return errors.Join(all...)
	}
	fmt.Println(check(0, -1))
	fmt.Println(check(1, 0))
	// Output:
	// width is 0, want at least 1
	// rounds is -1, want at least 0
	// <nil>
}
