// Package onnx owns the reading of ONNX models: it turns a ModelProto into a
// graph.Graph with the shape of every tensor and the cost of every op.
//
// The file is read on the wire. Weights are neither loaded nor copied: of an
// initializer only type and dimensions count, wherever its data is (in the file,
// in an external file, made by ConstantOfShape), except small constants that
// shapes are computed from.
//
// Every node of the main graph becomes one op. Inputs become Placeholders,
// initializers that are read become Initializers (floats) or Consts, and nodes
// that make weights (ConstantOfShape, Constant) become variables. A node with
// subgraphs or of a model-local function becomes one op with the summed cost of
// its body.
//
// Shapes are inferred here, by own rules for the operators of the standard and
// of the common com.microsoft set; for others the shapes recorded in the file
// are taken. Symbolic dimensions get the values of Config.
package onnx
