package features

import (
	"placer/graph"
	"placer/graph/unit"
	"placer/schedule"
)

// Adjacency returns, for each unit of p, at most most of the units it exchanges
// tensors or control with, in either direction, those with the most bytes first
// (GDP keeps 5). Ties go to the lower unit.
func Adjacency(g *graph.Graph, p *unit.Partition, most int) *schedule.Communication {
	return schedule.NewCommunication(p.NumUnits(), schedule.BytesPlusOne, schedule.Reads(g, p.Of), schedule.Controls(g, p.Of)).Heaviest(most)
}
