// Package dnnpart owns the JSON form of the partitioning instances of Tarnawski
// et al. (Efficient Algorithms for Device Placement of DNN Graph Operators,
// NeurIPS 2020) and of their splits: it reads instances into a graph with its
// table of times, and reads and writes splits.
//
// An instance names an accelerator's memory, the numbers of accelerators and of
// CPU cores, nodes with their latency on each in milliseconds, and edges with
// the milliseconds that moving the source's output to or from the host's memory
// takes. Nodes of one color class share a device: they become a co-location group.
// Every node becomes an op of the same name whose Resident bytes are its size,
// with one output that all its edges read.
package dnnpart
