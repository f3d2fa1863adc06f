// Package tensorflow owns TensorFlow's graphs: GraphDef (text and binary), MetaGraphDef,
// SavedModel, and TensorFlow.js's graph models.
//
// Function calls are inlined. A loop, of frames or functional, is its body once, whose
// ops repeat as often as a trip count that the caller states, on one device; of an If or
// a Case all branches are there. Shapes come from _output_shapes, and where those are
// missing from rules for the common operators. Colocation classes become co-location
// groups, and so do resource variables with what reads and updates them.
package tensorflow
