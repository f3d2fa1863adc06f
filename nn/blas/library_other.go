//go:build !((linux || darwin || freebsd) && (amd64 || arm64))

package blas

import "errors"

// Library is a BLAS shared library; this platform cannot open one.
type Library struct{ Gonum }

func open(string) (*Library, error) {
	return nil, errors.New("libraries are not opened on this platform")
}
