// Package pretrained owns the policy that the program carries: its weights, what
// it was trained on, and what it came to on families that were held out.
package pretrained

import (
	_ "embed"

	"placer/internal/fsx"
	"placer/placer/policy/proposer"
	"placer/placer/policy/sequential"
	"placer/plan"
)

//go:embed policy.safetensors.gz
var file []byte // its graphs' summaries compress to a third

//go:embed moves.safetensors
var moves []byte

//go:embed moves-all.safetensors
var movesOfAll []byte

// Policy returns the policy. Every call returns one of its own.
func Policy() (*sequential.Policy, error) {
	const name, most = "built-in policy", 16 << 20
	data, err := fsx.Expand(file, name, most)
	if err != nil {
		return nil, err
	}
	return sequential.Read(data, name)
}

// Moves returns the network that chooses the moves of guided annealing that decide on tasks:
// placement alone, or all. Every call returns one of its own.
func Moves(tasks plan.Tasks) (*proposer.Network, error) {
	if tasks == plan.Place {
		return proposer.Read(moves, "built-in network of moves")
	}
	return proposer.Read(movesOfAll, "built-in network of moves of all tasks")
}
