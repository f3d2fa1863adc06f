// Package onnx owns the reading of ONNX models: it turns a ModelProto into a
// graph.Graph with the shape of every tensor and the cost of every op.
//
// The file is read on the wire. Weights are neither loaded nor copied: of an
// initializer only type and dimensions count, wherever its data is (in the file,
// in an external file, made by ConstantOfShape), except small constants that
// shapes are computed from.
//
// Calls of model-local functions are written out first. Every node of the main
// graph then becomes one op, except for nodes that read constants or shapes
// alone, which are computed before the step, and quantisers that belong to a
// product. Inputs become Placeholders. What is known before the step and is read
// becomes an Initializer (weights, and floats of several elements) or a Constant.
// A node with subgraphs becomes one op with the summed cost of its body; an If
// has the cost of the costlier branch.
//
// Shapes are inferred here, by own rules for the operators of the standard and
// of the common com.microsoft set; for others the shapes recorded in the file
// are taken. Symbolic dimensions get the values of Config.
package onnx
