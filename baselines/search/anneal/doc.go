// Package anneal owns simulated annealing on units, coarse to fine: whole chains
// first (a layer's steps of one direction), then ever shorter runs of their
// cells, last single ops. A co-location group stays together. A Sketch is the
// coarse part alone: it judges and improves placements without simulating the problem.
package anneal
