// Package measure owns the measurement of one plan: it runs a step on real GPUs,
// with kernels of each op's own shapes, and compares what it took with what the
// simulator says.
//
// A graph has shapes and no numbers, so the kernels are synthetic but real. A
// matrix product, and a convolution as the product it amounts to, is a product of
// cuBLAS of the same shape and type; every other op is a kernel that reads the op's
// input bytes, writes its output bytes and does its arithmetic; views, variables,
// constants and inputs launch nothing. What is measured is therefore the time of
// such a step on this hardware under this plan, not that of a framework.
//
// Each device has one stream for its ops, in the order in which the simulator
// started them, and one for each way that its tensors leave. Events order the
// streams. One thread issues everything in one order in which every event is
// recorded before it is waited for. A tensor goes once to every device that reads
// it. Memory is one slab a device, whose offsets come from the simulated
// lifetimes; the contents of tensors mean nothing, so two that overlap because the
// real order differs do no harm.
//
// Several devices of the machine may stand on one GPU, each with its own streams
// and its own part of the memory, and where the driver can do it with its own
// multiprocessors; links between them are copies that are held back to the
// link's time.
package measure
