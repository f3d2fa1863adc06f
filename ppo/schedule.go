package ppo

import (
	"errors"

	"placer/internal/faults"
)

// Schedule is the learning rate over the updates of a run: a linear rise over the
// first Warmup updates to Peak, then a linear fall to Floor at update Total.
type Schedule struct {
	Peak, Floor   float64
	Warmup, Total int // updates
}

// Validate reports every fault of s.
func (s Schedule) Validate() error {
	var all faults.List
	all.If(!(s.Floor >= 0 && s.Peak > 0 && s.Peak >= s.Floor), "ppo: learning rate from %g to %g, want a peak above 0 and not below the floor", s.Peak, s.Floor)
	all.If(s.Warmup < 0 || s.Total < 0, "ppo: schedule of %d updates with %d of warm-up, want neither below 0", s.Total, s.Warmup)
	return errors.Join(all...)
}

// At returns the learning rate of update i, from 0.
func (s Schedule) At(i int) float64 {
	if i < s.Warmup {
		return s.Peak * float64(i+1) / float64(s.Warmup)
	}
	if i >= s.Total {
		return s.Floor
	}
	return s.Floor + (s.Peak-s.Floor)*float64(s.Total-i)/float64(s.Total-s.Warmup)
}
