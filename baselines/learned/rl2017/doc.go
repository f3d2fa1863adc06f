// Package rl2017 owns the placer of "Device Placement Optimization with
// Reinforcement Learning" (Mirhoseini et al., ICML 2017): an attentional
// sequence-to-sequence policy over co-location groups, trained by REINFORCE on
// the square root of the step time by several controllers that update shared
// parameters asynchronously.
//
// The asynchrony is that of a simulated clock: a controller reads the parameters,
// samples, and sends its gradient when its slowest worker would have measured its
// placement. Gradients so arrive late and in the order of the measured times, as
// on the paper's cluster, and yet the same seed gives the same placement.
package rl2017
