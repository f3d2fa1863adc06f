// Package strategies owns the comparison of what people run instead of one placement: data
// parallel, sharded, pipelined, tensor parallel steps and mixtures of them (package
// graph/strategy), on the devices of a machine, judged by the simulator at one global
// batch.
//
// Every device has two queues: what it computes, and a stream for communication, as GPUs
// have. The stream is a device of the simulated machine: it has the device's routes,
// computes nothing, and what it holds counts with the device's memory.
package strategies
