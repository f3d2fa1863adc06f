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
package ppo
