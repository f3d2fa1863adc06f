// Package fuse owns fusion: which ops of a graph may share one kernel, the
// kernels that follow from devices and fusion priorities, and a check of them
// that knows nothing of how they were made.
//
// A kernel is a set of ops. It is legal if
//
//   - all its ops are on one device, at most MaxOps of them;
//   - every dependency between two of its ops is a fused intermediate: data that
//     passes from a loop, a view or an anchor to a loop, a view or a reduction,
//     but from no anchor to a reduction (graph.FuseRole; see Roles);
//   - it holds at most one anchor, and none beside a reduction;
//   - what reads it from outside comes after its last op in the order of fusion
//     (Rules.Order).
//
// The last rule makes the kernels of a graph free of cycles: run by their last
// ops, each finds what it reads. It concerns one kernel at a time, so whether two
// kernels may become one does not depend on any third (docs/adr/0009).
//
// Letters: N ops, K kernels.
package fuse
