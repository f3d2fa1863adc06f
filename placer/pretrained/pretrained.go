// Package pretrained owns the policy that the program carries: its weights, what
// it was trained on, and what it came to on families that were held out.
package pretrained

import (
	_ "embed"

	"placer/placer/policy/proposer"
	"placer/placer/policy/sequential"
)

//go:embed policy.safetensors
var file []byte

//go:embed moves.safetensors
var moves []byte

// Policy returns the policy. Every call returns one of its own.
func Policy() (*sequential.Policy, error) { return sequential.Read(file, "built-in policy") }

// Moves returns the network that chooses the moves of guided annealing. Every call returns
// one of its own.
func Moves() (*proposer.Network, error) { return proposer.Read(moves, "built-in network of moves") }
