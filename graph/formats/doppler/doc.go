// Package doppler owns the text form of the task graphs of DOPPLER (ICLR 2026):
// einsum graphs with a cost of arithmetic and a cost of communication per op.
//
// Line 1 is the number of nodes, line 2 the ids of the input nodes, lines 3 and 4
// the sources and destinations of the edges between the other nodes, and then
// there is a line "compute,communication[,type]" for each of these. Inputs cost
// nothing and are not part of the graph.
//
// The costs have no unit. The published simulator divides by 1e10, and so does
// this package, in milliseconds: an op of cost 1e12 takes 100 ms. Devices run
// their ready ops first come first served, and transfers never wait for one
// another: a tensor is there its communication cost after its op's end.
package doppler
