// Package contiguous owns the optimal contiguous split for the throughput
// objective: the dynamic program over downsets of Tarnawski et al. (NeurIPS 2020,
// section 5), and its cheap form on one topological order.
//
// Contiguous means that stages can be put in order so that no data goes back:
// each device's forward ops are the difference of two downsets of the forward
// graph. A block's backward ops go where its forward ops are. A block without
// forward ops is ordered by its backward edges, reversed.
//
// dp[I][k] is the least possible maximum load of k devices that hold the downset
// I. From every I the program walks the downsets above it, one block at a time,
// and keeps the load of the difference up to date as it goes. A walk ends where
// the difference alone takes longer than the best split known, which the same
// program on one topological order supplies.
//
// Letters: B blocks, I downsets ("ideals"), C classes of devices.
package contiguous
