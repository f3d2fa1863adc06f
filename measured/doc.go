// Package measured owns what a search does with measurements: a meter that runs
// placements on GPUs here or elsewhere, a memo so that none runs twice, and
// evaluators that give a policy measured step times, of every sample or of the
// best of each round.
//
// A placement that the simulator finds too large is not run. One that runs out of
// memory on the device is infeasible, and so is one that cannot be measured;
// several failures in a row end the search, since they say more of the host than
// of the placements.
package measured
