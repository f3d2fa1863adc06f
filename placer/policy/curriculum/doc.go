// Package curriculum owns the order in which a policy of one graph learns: stages
// from coarse units of ops to fine ones (adr/0008), the walk through several such
// curricula within one budget, and how what was learnt on coarse units is where
// finer ones begin.
package curriculum
