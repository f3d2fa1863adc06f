// Package pipedreamplan owns PipeDream's planner (Narayanan et al., SOSP 2019, section
// 3.1): the cut of a chain of layers into stages, each replicated on several
// workers, that finishes a minibatch most often.
//
// A stage of layers i..j on m workers takes, per minibatch,
//
//	T(i..j, m) = 1/m max(A(i..j), 2 (m-1) W / B)
//
// where A is the time of one worker, or of one group of workers of the level
// below, W the bytes of the layers' parameters, which m replicas synchronise, and
// B the bandwidth between them in bytes a second. Between two stages the
// activations travel forth and their gradients back, 2 a / B. The pipeline is as
// slow as its slowest stage or boundary. Levels of a machine (workers of a server,
// servers of a cluster) are planned from the inside out: what a level's best
// pipeline takes is what one worker of the next level takes.
//
// Letters: L layers, W workers of a level, S stages.
package pipedreamplan
