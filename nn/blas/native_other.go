//go:build !amd64

package blas

func natives() []*Native { return nil }
