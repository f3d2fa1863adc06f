package unit

import "placer/graph"

// Level is a granularity, from fine to coarse.
type Level uint8

// Levels.
const (
	Op      Level = iota // one unit per co-location group, one per other op
	Cell                 // a variable with its gradient and update; an LSTM step, a branch, an attention block
	Segment              // a few consecutive cells of one chain
	Chain                // a layer's cells of one direction
	NumLevels
)

// Partition assigns every op to a unit.
type Partition struct {
	Of  []int32        // [N] op -> unit, 0..U-1; units are ordered by their first op
	Ops [][]graph.OpID // [U] ops of each unit, ascending
}

// NumUnits returns U.
func (p *Partition) NumUnits() int { return len(p.Ops) }

// Hierarchy holds one partition per level; every unit of a level lies within
// one unit of each coarser level.
type Hierarchy struct {
	Levels [NumLevels]*Partition
}
