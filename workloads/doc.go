// Package workloads owns the generators of the graphs that placer is measured
// on: the training graphs of the papers' models, one op per TensorFlow 1.x op,
// and of models from other fields and of today.
//
// Build makes the graph of a name that List gives, or of a textual form such as
// "gnmt:layers=6,source=30", whose siblings of other sizes serve as training data.
// A generator writes the forward ops that
// TensorFlow's Python layers write, down to axis constants and shape
// arithmetic, and package train derives gradients and updates. Assumptions,
// free parameters and counts beside the published ones are in
// docs/workloads.md.
//
// Letters in shapes: B batch, T time steps, H hidden units, V vocabulary,
// C channels, Y and X image height and width.
package workloads
