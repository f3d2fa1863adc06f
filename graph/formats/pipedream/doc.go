// Package pipedream owns the text form of the profiles of PipeDream (Narayanan
// et al., SOSP 2019): layers with measured forward and backward times, activation
// and parameter sizes, and published partitions where a layer names its stage.
//
// A layer becomes a forward op and, where the profile has backward times, a
// backward op that shares its device; gradients flow against the activations and
// are as large. The forward time of an input layer is that of loading data and
// counts as nothing.
package pipedream
