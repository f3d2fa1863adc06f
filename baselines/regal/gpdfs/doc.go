// Package gpdfs owns REGAL's baseline GP+DFS (Paliwal et al., ICLR 2020, A.10),
// what a compiler does without search: graph partitioning by Kernighan and Lin
// (1970) places the ops so that little is sent between devices, and a depth-first
// walk orders them.
//
// The devices get equal numbers of ops, whatever their times. That balances
// nothing of what the run time is made of, which is why the method is far behind
// in the paper and here.
package gpdfs
