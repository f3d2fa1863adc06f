// Package graphsage owns the graph embedding of GO: GraphSAGE with max pooling
// (Hamilton et al., arXiv:1706.02216), trained end to end with the policy that
// reads it. GO describes it in section 4.1.
//
// Layer l turns the states h [N,d] of the nodes into the next ones:
//
//	hN(v)   = max over u in N(v) of sigmoid(W_l h(u) + b_l)   (element-wise)
//	h'(v)   = f(concat(h(v), hN(v)))                           (f: affine, ReLU)
//
// which are Eq. 3 of GraphSAGE and line 5 of its Algorithm 1; aggregate.go has the first,
// encoder.go the layers, neighbours.go the lists.
//
// A node without neighbours has hN = 0. By default a residual connection and
// layer normalisation follow each layer, h' = norm(h + f(...)), which the paper
// does not have: without them the states of a graph's nodes grow so alike that a
// policy over them picks one device for a whole segment. Config.Residual turns
// that off.
package graphsage
