package cuda

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"placer/hw/gpu"
)

// open loads the first library of names that is there. The error is the loader's,
// of one that is there and cannot be loaded if there is such a one.
func open(names []string) (uintptr, error) {
	var first error
	for _, n := range names {
		h, err := load(n)
		if err == nil {
			return h, nil
		}
		if first == nil || absent(first) && !absent(err) {
			first = err
		}
	}
	return 0, first
}

func absent(err error) bool {
	text := err.Error()
	return strings.Contains(text, "No such file") || strings.Contains(text, "could not be found")
}

// symbol is a function to be found in a library.
type symbol struct {
	at   *uintptr
	name string
}

// find looks all symbols up.
func find(library uintptr, symbols []symbol) error {
	for _, s := range symbols {
		var err error
		if *s.at, err = lookUp(library, s.name); err != nil {
			return fmt.Errorf("%s is missing: %w", s.name, err)
		}
	}
	return nil
}

// call calls fn with words, some of which are addresses of Go variables.
//
//go:uintptrescapes
func call(fn uintptr, a ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, a...)
	return int32(r)
}

// check is call for functions of the driver.
//
//go:uintptrescapes
func check(fn uintptr, a ...uintptr) error {
	if r := call(fn, a...); r != 0 {
		return gpu.Code(r)
	}
	return nil
}

// get is check for functions that write a T to where their first argument points.
// No word of a is the address of a Go variable.
func get[T any](fn uintptr, a ...uintptr) (v T, err error) {
	err = checkInto(fn, uintptr(unsafe.Pointer(&v)), a...)
	return v, err
}

// checkInto is check with the first word apart.
//
//go:uintptrescapes
func checkInto(fn, first uintptr, a ...uintptr) error {
	return check(fn, append([]uintptr{first}, a...)...)
}

// status is call for functions of cuBLAS.
//
//go:uintptrescapes
func status(fn uintptr, a ...uintptr) error {
	if r := call(fn, a...); r != 0 {
		return gpu.Status(r)
	}
	return nil
}

// text returns the zero-terminated string in b.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
