// Package anneal owns simulated annealing on units, coarse to fine: whole chains
// first (a layer's steps of one direction), then ever shorter runs of their
// cells, last single ops. A co-location group stays together. A Sketch is the
// coarse part alone: it judges and improves placements without simulating the problem.
//
// The files in the order of a run. A placement alone: placer.go has the parameters and the
// outcome, run.go the stages on all replicas and what they exchange, schedule.go stages and
// temperatures, neighbourhood.go the decisions of a stage and what is near (parts.go where a
// cell lies apart, alike.go for ops that are alike, shared.go what runs have in common),
// starts.go where a run begins, replica.go one annealing run, moves.go its moves, recreate.go
// ruin and recreate, objective.go the score, lookahead.go the score above which no move is
// taken, allowance.go what a placement may cost beside its step.
//
// Moves that a guide chooses: guide.go is what a network gives, adviser.go draws and ranks
// moves, movefeatures.go has what it reads of one, movefacts.go and timeline.go what these are
// made of. All tasks together: joint.go divides the budget, joint_walk.go anneals,
// joint_moves.go has the moves, joint_keys.go priorities that moves can change; under a guide
// joint_adviser.go, joint_features.go, joint_facts.go (of which joint_placed.go,
// joint_shifted.go and joint_fused.go are parts) and joint_timeline.go are as above.
//
// For others: sketch.go on the coarsened graph alone, exact.go and shorten.go on the problem's
// own objective, where screen.go looks at moves first.
package anneal
