// Package ppo owns how a policy learns from scores: the clipped objective of PPO
// (arXiv:1707.06347) over decisions made for the N nodes of a graph, the rewards
// and baselines of GO and GDP, and the loop that samples, scores and updates.
//
// It knows neither graphs nor machines. Env scores decisions; Policy is a network
// that gives logits [N,A], of one task or of several, and takes gradient steps.
//
// Departure from the paper's formula: the probability ratio of a whole decision
// is a product over N independent nodes and leaves the clipping range at once for
// large N. As usual, the ratio is taken and clipped per node, with the sample's
// advantage for all its nodes (or, with Credit, one advantage per node).
//
// The files in the order of the algorithm: config.go has the parameters, trainer.go the
// loop, sample.go draws decisions, reward.go and advantage.go say what they are worth,
// objective.go is the loss, Objective.Loss, and task.go the part of it that one task has,
// down to the clipped objective of one choice, Stats.addClipped.
//
// Letters: N nodes, M choices of a decision over all tasks, K samples of a round, A
// levels of a choice, T refinement iterations; ρ ratio of probabilities, ε its clip.
package ppo
