// Package synth owns REGAL's synthetic data (Paliwal et al., ICLR 2020, A.1.4):
// random graphs with random costs, the filter that keeps the interesting ones,
// and the augmentation of real graphs (A.1.2).
//
// Graph number k of a seed is always the same, whichever others are made.
//
// Letters: N ops, the source and the sink included.
package synth
