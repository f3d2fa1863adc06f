// Package gpu owns the interface to GPUs: what the project asks of the CUDA
// driver and of cuBLAS, as two small interfaces, and the rules for using them.
//
// Bindings: hw/gpu/cuda finds the libraries at run time (the default), hw/gpu/cu goes
// through gorgonia.org/cu (build tag placer_cu), hw/gpu/fake is a GPU in Go with
// virtual time. All of them pass hw/gpu/gputest.
//
// A context is current to an operating-system thread, so whoever calls a Driver
// stays on one: see Locked. Work on one stream runs in the order of the calls;
// work on two streams is ordered by events alone. Waiting for an event that has
// not been recorded yet is no wait at all, so the host issues in an order in
// which every event is recorded first.
package gpu
