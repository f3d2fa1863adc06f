// Package hlo owns XLA's programs: HLO as text and as a protocol buffer
// (HloModuleProto, HloProto), and StableHLO as text of MLIR. All three become the same
// modules of computations, and those one graph.Graph.
//
// The graph is that of the entry computation. Calls are inlined. A fusion, a loop and a
// conditional are an op each, with the cost of what they run: a loop's body as often as its
// trip count, one after another, of a conditional the dearest branch. Tuples and their
// elements are no ops, and a barrier is names of what passes through it, which wait for all of it.
// What is a weight the form does not say: parameters that the module gives back in place
// (input_output_alias) and globals are variables, other parameters are inputs.
package hlo
