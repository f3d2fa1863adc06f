// Package kernel owns the GPU kernels that stand for ops: a stream of reads,
// writes and arithmetic of any size, random data, a delay, nothing. They are
// written in CUDA C and kept as PTX for the oldest architecture that has what
// they use, which every later driver compiles for its own.
package kernel
