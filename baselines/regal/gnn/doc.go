// Package gnn owns REGAL's policy (Paliwal et al., ICLR 2020, 4.2): a graph
// network passes messages along the edges of a computation graph and proposes
// beta distributions for each op, from which BRKGA draws chromosomes; REINFORCE
// trains it.
//
// A Multigraph is what the network reads: 9 + D columns of each op and 3 of each
// edge, one edge for each tensor that an op reads. With h the ops' states, T
// rounds of
//
//	m_e  = MLPmsg([h_src, h_dst, h_e])     to e's target
//	m'_e = MLP'msg([h_src, h_dst, h_e])    to e's source
//	h_v  = MLPnode([h_v, Σ m_e over in-edges + Σ m'_e over out-edges])
//
// share their weights. An MLP is a hidden layer of rectifiers and a linear layer;
// as the latter commutes with the sum, it is applied to an op's sum instead of to
// each message. Departures: an MLP that makes a state applies the rectifier to
// its second layer too, and mean aggregation takes the means over in-edges and
// over out-edges apart.
//
// Letters: N ops, M edges, D devices, H width, T rounds, C logits of an op, K
// samples.
package gnn
