package cuda

import (
	"bytes"
	"unsafe"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// check calls a function of the driver with words, some of which are addresses of Go
// variables.
//
//go:uintptrescapes
func check(fn uintptr, a ...uintptr) error {
	if r := dynlib.Call(fn, a...); r != 0 {
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

// status is check for functions of cuBLAS.
//
//go:uintptrescapes
func status(fn uintptr, a ...uintptr) error {
	if r := dynlib.Call(fn, a...); r != 0 {
		return gpu.Status(r)
	}
	return nil
}

// text returns the zero-terminated string in b.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
