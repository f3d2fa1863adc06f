// Package costgraph owns TensorFlow's CostGraphDef, text and binary: a graph of
// ops with the sizes of their outputs and their times in microseconds. REGAL's
// data is in this form.
//
// Decode reads a file, Import makes a graph.Graph of it with the op times beside
// it, Export goes the other way.
package costgraph
