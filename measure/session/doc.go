// Package session owns measurements in a search. Package measure runs one step of
// one plan; a Session here runs one placement after another of a graph on the GPUs
// of this host. Measurements are those of a search: a Cache keeps each, so that
// none runs twice. An Evaluator gives a policy the measured step time of every
// sample, a Prescreen that of the best samples of each round.
//
// A placement that the simulator finds too large is not run. One that runs out of
// memory on the device is infeasible, and so is one that cannot be measured;
// several failures in a row end the search, since they say more of the host than
// of the placements.
package session
