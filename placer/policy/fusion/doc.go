// Package fusion owns how fusion is learnt on a given placement: a fusion priority for
// each Weisfeiler-Lehman class of ops, then for the classes apart by place in time, by
// segment, and for single ops (adr/0018 to 0020).
//
// As in package cem, a distribution moves towards the best samples of late. Beside that,
// the first two stages learn the value of every class's levels from what its kernels cost,
// the last two by difference rewards against the best plan.
//
// The files in the order of the algorithm: config.go has the parameters, policy.go stages
// and rounds, classes.go the classes of ops that decisions are for, distribution.go what
// samples are drawn from and its update. What the update learns beside the best samples:
// values.go for the first two stages; differences.go for the last two, reference.go how a
// sample's kernels differ from the best plan's, lookahead.go plans beside the samples, of
// which only the kernels are priced.
package fusion
