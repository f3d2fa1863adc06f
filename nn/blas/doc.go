// Package blas owns the choice of a matrix product: our own in Go assembly, a
// BLAS library of the machine opened while the program runs, or gonum's.
//
// No C compiler is needed and nothing is linked: Open asks the dynamic loader
// for a library such as libopenblas.so.0 and calls its sgemm. Every call is
// checked against the lengths of its slices first, because foreign code would
// write past them.
//
// Matrices are row-major float32 slices with a leading dimension (the distance
// between the starts of consecutive rows).
package blas
