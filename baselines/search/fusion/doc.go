// Package fusion owns fusion by rule: none, the rules of TensorFlow's own
// optimisers, and everything. All give fusion priorities, [N], for a fixed
// placement, to be used in a plan.Plan. Priorities found by simulated annealing
// are anneal.Placer's.
package fusion
