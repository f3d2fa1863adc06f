// Package throughput owns the throughput objective: a pipeline finishes one sample
// per load of its most loaded device, so the objective of a placement is the
// largest load.
//
// The load of an accelerator is the time of its ops, plus the time to receive
// every tensor that one of its ops reads and another device makes, once, plus
// the time to send every tensor that it makes and another device reads, once.
// The load of a CPU is the time of its ops: tensors travel through the host's
// memory. (Tarnawski et al., NeurIPS 2020, section 3; the definition of their
// published instances.) A device's memory must hold what the pipeline in steady state
// holds there at most (pipeline.go); on published instances, whose definition this
// is, the sizes of its ops.
//
// A tensor with its producer and its consumers is a net. A net whose ops are on
// several devices costs each accelerator among them its time, so a placement is a
// partition of a hypergraph and a load is its part's compute plus its cut nets.
//
// Letters: N ops, B blocks (ops that share a device), D devices, C classes of
// equal devices.
package throughput
