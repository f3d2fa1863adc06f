// Package dynlib loads shared libraries of this host without cgo. A library stays
// loaded until the program ends.
package dynlib

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// Open loads the first library of names that is there, and returns its handle. The error
// is the loader's, of one that is there and cannot be loaded if there is such a one.
func Open(names ...string) (uintptr, error) {
	var first error
	for _, n := range names {
		h, err := load(n)
		if err == nil {
			return h, nil
		}
		if first == nil || Absent(first) && !Absent(err) {
			first = err
		}
	}
	return 0, first
}

// Absent reports whether an error of Open says that there is no such file.
func Absent(err error) bool {
	text := err.Error()
	return strings.Contains(text, "No such file") || strings.Contains(text, "could not be found")
}

// Symbols are functions to be found in a library, by name.
type Symbols map[string]*uintptr

// Find looks all symbols up.
func Find(library uintptr, symbols Symbols) error {
	for _, name := range slices.Sorted(maps.Keys(symbols)) {
		at, err := LookUp(library, name)
		if err != nil {
			return fmt.Errorf("%s is missing: %w", name, err)
		}
		*symbols[name] = at
	}
	return nil
}

// LookUp returns the address of a function.
func LookUp(library uintptr, name string) (uintptr, error) { return lookUp(library, name) }

// Call calls fn with words, some of which are addresses of Go variables, and returns the
// 32 bits that C's int has.
//
//go:uintptrescapes
func Call(fn uintptr, a ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, a...)
	return int32(r)
}
