// Package scotch owns the two baselines that map the op graph with Scotch
// (Pellegrini), as RL-2017 (section 4.1) used it: op times, the time to move what
// ops exchange, and an architecture of the devices, their speeds and the distances
// between them. Scotch sees all devices, MinCut all but the CPU. Neither knows
// time, order or memory.
//
// It runs the program gmap (scotch_gmap on Debian, version 7 or later) as a process
// of its own, on one thread and with the seed that is built into it: one problem
// gives one mapping, whatever the problem's seed.
package scotch
