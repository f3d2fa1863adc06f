// Package graph owns the computation graph: operations, the tensors they
// produce, and control dependencies, for one step of a model.
//
// A Graph is immutable. Build makes one out of a Builder, orders its ops
// topologically and checks every invariant; nothing about a plan, a machine or
// a run is ever stored in it. OpID and TensorID are dense, so side tables are
// slices of length NumOps or NumTensors.
//
// Letters: N ops, T tensors, E data edges (a tensor read twice by one op is two
// edges).
package graph
