// Package reinforce owns what the recurrent device placers, RL-2017 and HDP,
// have in common: what they are told about a group of ops, and how step times
// become advantages of REINFORCE (Williams, 1992).
//
// Letters: N ops, E entities, T groups, K samples of a round.
package reinforce
