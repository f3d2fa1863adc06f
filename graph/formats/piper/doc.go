// Package piper owns the JSON form of the graphs of Piper (Tarnawski et al.,
// NeurIPS 2021): layers with time and memory per degree of tensor parallelism.
// It reads the plain configuration at degree 1, as one op a layer: its time is
// that of forward and backward pass together, its resident memory what it holds
// with one microbatch in flight.
package piper
