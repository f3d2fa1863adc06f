// Package vec owns the row kernels of the learning engine: short loops over
// float32 slices such as exp, sigmoid, dot product and running maximum.
//
// Every function has a portable form in plain Go. On amd64 processors with AVX2
// and FMA an assembly form takes over, chosen once at start. The two differ in
// the last bits (order of summation, fused multiply-add), so results are
// reproducible on one kind of machine, not across kinds.
//
// Slices named together must have equal lengths; a shorter one panics. No
// function keeps its arguments. dst may be the same slice as a source, but must
// not overlap it otherwise.
package vec
