// Package check owns the faults of placements, whoever made them: what cannot run, what
// does not fit, and what costs time for nothing, each with the op, the cost and the
// change that would help, simulated.
package check
