// Package balance owns the search for splits of any shape under the throughput
// objective: annealing of blocks over devices, from the best contiguous split, on
// the loads alone.
//
// Moving a block changes the loads of the two devices involved and no other, by
// its time and by the nets it touches: a move costs its nets, not the graph. The
// annealed energy is the sum over devices of (load / best)^8, which the largest
// load dominates; the answer is the placement of least maximum load on the way.
package balance
