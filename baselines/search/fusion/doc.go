// Package fusion owns fusion without learning: none, the rules of TensorFlow's
// own optimisers, everything, and priorities found by simulated annealing. All
// give fusion priorities, [N], for a fixed placement, to be used in a plan.Plan.
package fusion
