// Package schedule owns priorities without learning, for a fixed placement: first
// in first out, the critical path with and without its transfers, and priorities
// found by simulated annealing. All give priorities, [N], to be used in a
// plan.Plan.
package schedule
