// Package explain owns the reasons of a plan's step: where its critical path spends its
// time, what binds, what could wait, what would change if the machine were another, and
// what each difference between two plans is worth.
//
// Times are in whole picoseconds, so that the parts of a step sum to it exactly. Instants
// are rounded, not durations: a part is a difference of two rounded instants.
package explain
