// Package cuda owns the default binding of gpu.Driver and gpu.BLAS: it finds
// libcuda and libcublas at run time, so that one program runs on hosts with and
// without GPUs and needs no C compiler and no CUDA headers.
//
// Nothing checks the pointers that cross to C here, so the rules are few and a
// test reads the source for them (safety_test.go): the address of a Go variable is
// taken in the argument list of a call that is marked uintptrescapes and nowhere
// else; memory that C reaches through memory of ours is pinned.
//
// Symbols are named with their version (cuMemAlloc_v2), as the signatures here
// were written for it.
package cuda
