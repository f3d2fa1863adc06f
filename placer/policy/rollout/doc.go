// Package rollout owns what the policies of one graph share when they sample: a
// Decoder turns choices for units of ops into plans, a Run evaluates a round of
// them on several goroutines, keeps the best, and tracks the budget.
//
// The files in the order of a round: allowed.go says which devices can hold a unit, decoder.go
// turns decisions into plans, run.go evaluates them and tracks the budget.
package rollout
