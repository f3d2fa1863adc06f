package blas

import "golang.org/x/sys/cpu"

// natives returns the forms this processor can run, the fastest first.
func natives() (all []*Native) {
	narrow := tile{4, 16, kernelNarrow}
	if cpu.X86.HasAVX512F {
		all = append(all, &Native{name: "go-avx512", wide: tile{8, 32, kernelAVX512}, narrow: narrow})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, &Native{name: "go-avx2", wide: tile{6, 16, kernelAVX2}, narrow: narrow})
	}
	return all
}

// kernelNarrow is a kernel for tiles of 4 rows and 16 columns; k > 0.
//
//go:noescape
func kernelNarrow(k int, a *float32, rowStride, colStride int, b, c *float32, ldc int, store bool)

// kernelAVX2 is a kernel for tiles of 6 rows and 16 columns; k > 0.
//
//go:noescape
func kernelAVX2(k int, a *float32, rowStride, colStride int, b, c *float32, ldc int, store bool)

// kernelAVX512 is a kernel for tiles of 8 rows and 32 columns; k > 0.
//
//go:noescape
func kernelAVX512(k int, a *float32, rowStride, colStride int, b, c *float32, ldc int, store bool)
