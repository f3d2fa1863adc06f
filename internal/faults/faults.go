// Package faults owns the collection of everything that is wrong with a value, so that
// who set it sees all of it at once.
package faults

import "fmt"

// List is what has been found wrong, in order. errors.Join makes one error of it, nil
// where it is empty.
type List []error

// If adds a fault, worded as by fmt.Errorf, where bad is true. The arguments are
// evaluated either way.
func (l *List) If(bad bool, format string, a ...any) {
	if bad {
		*l = append(*l, fmt.Errorf(format, a...))
	}
}
