// Package hdp owns the placer of "A Hierarchical Model for Device Placement"
// (Mirhoseini et al., ICLR 2018), the baseline of GO and GDP: a feed-forward
// grouper gives every op to one of a fixed number of groups, a
// sequence-to-sequence policy with attention places the groups, and REINFORCE on
// the square root of the step time trains both at once.
package hdp
