package cem

import (
	"fmt"

	"placer/graph/unit"
)

// Config describes a Policy.
type Config struct {
	// Level is the granularity of the finest decisions.
	Level unit.Level
	// Samples is the number of plans in a round, at least 1. A budget too small for
	// eight rounds halves it, down to 8.
	Samples int
	// Window is the number of the latest samples from which the best are taken, at
	// least 1.
	Window int
	// Elite is the share of them that probabilities move to, above 0 and up to 1; at least
	// two samples are taken.
	Elite float64
	// Mix is how far a round moves the probabilities, from 0, not at all, to 1, to how often
	// the best samples choose a level.
	Mix float64
	// Workers is the number of goroutines that evaluate, at least 1. It changes no
	// result.
	Workers int
}

// Default returns the configuration of GO-one's placements beside other tasks.
func Default() Config {
	return Config{Level: unit.Chain, Samples: 16, Window: 640, Elite: 0.05, Mix: 0.3, Workers: 1}
}

// Validate reports a fault.
func (c Config) Validate() error {
	if c.Level >= unit.NumLevels || c.Samples < 1 || c.Window < 1 || !(c.Elite > 0 && c.Elite <= 1) || !(c.Mix >= 0 && c.Mix <= 1) || c.Workers < 1 {
		return fmt.Errorf("policy: cross-entropy %+v: want a level there is, positive samples, window and workers, shares up to 1", c)
	}
	return nil
}
