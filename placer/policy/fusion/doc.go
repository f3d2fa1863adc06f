// Package fusion owns how fusion is learnt on a given placement: a fusion priority for
// each Weisfeiler-Lehman class of ops, then for the classes apart by place in time, by
// segment, and for single ops (adr/0018 to 0020).
//
// As in package cem, chances move towards the best samples of late. Beside that, the
// first two stages learn the value of every class's levels from what its kernels cost
// (values.go), the last two by difference rewards against the best plan
// (differences.go), also of plans of which only the kernels are priced (lookahead.go).
package fusion
