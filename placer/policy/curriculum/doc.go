// Package curriculum owns the order in which a policy of one graph learns: stages
// from coarse units of ops to fine ones (adr/0008), the walk through several such
// curricula within one budget, and how what was learnt on coarse units is where
// finer ones begin.
//
// The files in the order of the algorithm: stages.go has the curricula and their stages,
// coarsen.go and blocks.go the units of these, walk.go the walk through them, warmstart.go
// where a stage begins.
package curriculum
