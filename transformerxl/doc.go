// Package transformerxl owns the decision network of GO and GDP, which turns the
// embedded nodes of a graph into logits: Transformer-XL layers (arXiv:1901.02860)
// with segment-level recurrence and feature modulation, then attention over the
// tasks. The tasks are placement, scheduling and fusion.
//
// The files in the order of the forward pass: config.go has the parameters, segments.go
// cuts the rows, network.go the layers, layer.go one of them, attention.go its attention
// with recurrence, tasks.go the attention over the tasks.
//
// The rows of a graph, in topological order, are cut into segments. A row
// attends to the rows of its own segment and, as memory, to the last rows of the
// segment before it. As in the paper the memory is a cache without gradient
// (section 3.2, SG): a loss changes the weights through it, but not the states in it. There is no
// positional encoding, since the embedding already holds the topology; so a
// permutation of the rows of a segment permutes the results and nothing else, unless the
// memory is a part of a segment: then the next segment remembers other rows.
//
// Feature modulation (parameter superposition; GO, section 4.3; GDP, section 3.3):
// with m one more transformer layer over the graph embedding h,
//
//	x(0) = h,  x(l+1) = a_l(m(h) * x(l))   (element-wise product)
package transformerxl
