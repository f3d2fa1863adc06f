// Package remat owns what a training step can give up for memory: activations that are
// dropped after the forward pass and computed again before their gradients
// (rematerialization; Chen et al., arXiv:1604.06174), or sent to the host and fetched
// (vDNN, Rhu et al., MICRO 2016), a layer at a time, or the cores of attention alone
// (Korthikanti et al., arXiv:2205.05198). It derives the graph of such a step, of ordinary
// ops on ordinary devices.
package remat
