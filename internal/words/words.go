// Package words owns how a count is said.
package words

import "fmt"

// Count returns n with what it counts, in the singular where n is 1: "1 device is",
// "2 devices are".
func Count[N ~int | ~int32 | ~int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
