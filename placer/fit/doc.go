// Package fit owns the search for a plan of a training step that does not fit its
// machine as it is: which layers compute their activations again and which keep them on
// the host (graph/remat), beside where everything runs, judged by the same simulator.
package fit
