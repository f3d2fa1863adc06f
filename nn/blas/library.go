package blas

import (
	"errors"
	"fmt"
)

// Candidates returns the names Open tries when it is given none: OpenBLAS as
// Linux distributions and macOS package managers install it. Reference BLAS
// libraries are left out, as they are slower than the implementation in Go.
func Candidates() []string {
	return []string{"libopenblas.so.0", "libopenblas.so", "libopenblas.dylib", "/opt/homebrew/opt/openblas/lib/libopenblas.dylib"}
}

// Open returns the first library of names (of Candidates, if there are none)
// that loads, has sgemm and multiplies correctly. It sets OpenBLAS to one
// thread, since the caller's workers already share the processor. The library
// stays loaded until the program ends.
func Open(names ...string) (*Library, error) {
	if len(names) == 0 {
		names = Candidates()
	}
	var all []error
	for _, name := range names {
		l, err := open(name)
		if err == nil {
			err = selfTest(l)
		}
		if err == nil {
			return l, nil
		}
		all = append(all, fmt.Errorf("%s: %w", name, err))
	}
	return nil, fmt.Errorf("no BLAS library: %w", errors.Join(all...))
}

// selfTest guards against a library with another calling convention, such as
// one built with 64-bit integers, before it computes anything that matters.
func selfTest(g Gemm) error {
	a := []float32{1, 2, 3, 4, 5, 6}    // [2,3]
	b := []float32{1, 0, 2, 0, 1, 3}    // [2,3], used transposed
	want := []float32{7, 11, 16, 23, 9} // the last one must stay as it is
	c := []float32{0, 0, 0, 0, 9}
	g.Sgemm(false, true, 2, 2, 3, 1, a, 3, b, 3, 0, c, 2)
	for i := range c {
		if c[i] != want[i] {
			return fmt.Errorf("sgemm gave %v, want %v", c, want)
		}
	}
	return nil
}
