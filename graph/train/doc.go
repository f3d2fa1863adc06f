// Package train owns the derivation of a training step from a forward graph:
// Derive adds the backward ops, the accumulation of gradients and the
// optimizer's update, with the costs and the saved activations that they have.
//
// The ops are those that TensorFlow 1.x (1.12) writes into its GraphDef: each
// rule names the ops of the Python gradient function it follows, down to the
// shape arithmetic, the group_deps of gated gradients and the constants. So the
// graph of a model written with TensorFlow's ops has the op count that
// TensorFlow gives it. Kinds that TensorFlow lacks (ONNX's) get the fused
// gradient that a library would offer, and unknown kinds one op of their class
// (fallback.go).
//
// Two conventions let cost models tell apart what runs on the device:
//   - An op with no FLOPs and no Bytes launches no kernel in TensorFlow. Shape
//     arithmetic runs on the host, a Sum over no axes passes its input on, and
//     initializers run before the step. Package roofline goes by the kind and
//     charges those whose kind has kernels a launch
//     (docs/hardware-models.md, Launch).
//   - Op.Bytes differs from what Build would fill in only where the op updates in
//     place or touches some rows of its operand.
//
// With Config.MasterWeights a variable of 16 bits has a copy in f32 beside it, which is what
// the optimizer's arithmetic and its slots are of (master.go).
//
// Letters: N ops, T tensors of the forward graph; their ids are the same in the
// derived graph. M, N, K are those of graph.GEMM.
package train
