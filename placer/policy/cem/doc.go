// Package cem owns a policy without a network: the probabilities of each unit's choices are
// logits of this graph alone (per-instance logits), from coarse units to fine ones,
// and after each round of samples they move towards the best samples of late, the
// cross-entropy method (R. Rubinstein, Methodology and Computing in Applied
// Probability 1, 1999). Policy begins with probabilities all alike; Refiner begins at the
// placement that the problem has.
//
// The files in the order of the algorithm: config.go has the parameters, policy.go stages
// and rounds, distribution.go what samples are drawn from and its update, elites.go the
// best of the latest samples.
package cem
