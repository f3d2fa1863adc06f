// Package proposer owns the network that chooses among moves of a search: before a move
// is judged by simulation, it says from what the last simulation showed whether the move
// is likely to shorten the step. It is trained on the moves of searches of other graphs,
// every one of which the simulator has judged.
//
// Letters: M moves, F features of a move (those of
// anneal.MoveFeatureNames, or of JointFeatureNames where it decides all tasks), H hidden.
//
// The files in the order of the algorithm: collect.go gathers the moves of searches,
// samplefile.go keeps them, network.go has the network and how it ranks moves, train.go its
// training, file.go the file of a trained one.
package proposer
