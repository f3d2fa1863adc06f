// Package torchtrace owns what PyTorch's profiler writes of a step: execution traces
// (operators with the tensors that they read and write, without times) and Kineto's
// Chrome traces (operators and kernels with times, without tensors).
package torchtrace
