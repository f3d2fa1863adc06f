// Package goone owns the papers' policy: GraphSAGE and Transformer-XL (package
// gonet), trained from nothing by PPO on the one graph that it plans for, with
// sampled plans and their scores to learn from (GO, section 4; GDP, section 3.4). It
// decides any of placement, schedule and fusion.
//
// The files in the order of the algorithm: config.go has the parameters, policy.go
// sets up the network, train.go has stages, rollouts, rewards and updates, start.go
// where a stage begins, checkpoint.go what is saved and resumed.
package goone
