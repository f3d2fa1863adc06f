// Package cem owns a policy without a network: the chances of each unit's choices are
// logits of this graph alone (per-instance logits), from coarse units to fine ones,
// and after each round of samples they move towards the best samples of late, the
// cross-entropy method (R. Rubinstein, Methodology and Computing in Applied
// Probability 1, 1999). Policy begins with chances all alike; Refiner begins at the
// placement that the problem has.
package cem
