package ppo

import (
	"errors"

	"placer/internal/faults"
)

// Config describes a Trainer.
type Config struct {
	Samples     int // K, decisions sampled in a round
	Iterations  int // T, refinement iterations of a decision
	Epochs      int // passes over the samples in a round
	Minibatches int // parts of the samples, with an update each; must divide Samples
	// Group is the number of samples in a row that share the choices of the first
	// task; 0 means 1. The first task then learns from the means of groups, the
	// others from what sets the samples of a group apart, so that the large
	// differences between placements do not drown the small ones between what is
	// decided on top of them.
	Group   int
	ClipEps float64
	Entropy float64
	// ValueCost is the factor of the value's error, which is trained with the
	// baseline LearnedValue only.
	ValueCost float64
	Baseline  Baseline
}

// Default returns the clip and entropy of GDP, table 4, with fewer rollouts and
// updates a round than there, for cheap evaluations on few cores.
func Default() Config {
	return Config{Samples: 16, Iterations: 1, Epochs: 3, Minibatches: 1, ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all faults.List
	for _, f := range []struct {
		name string
		v    int
	}{{"samples", c.Samples}, {"iterations", c.Iterations}, {"epochs", c.Epochs}, {"minibatches", c.Minibatches}} {
		all.If(f.v < 1, "ppo: %s is %d, want at least 1", f.name, f.v)
	}
	all.If(c.Minibatches > 0 && c.Samples%c.Minibatches != 0, "ppo: %d minibatches do not divide %d samples", c.Minibatches, c.Samples)
	all.If(c.Group < 0 || c.Group > 1 && (c.Samples%c.Group != 0 || c.Samples == c.Group || c.Iterations > 1 || c.Baseline != Standardised), "ppo: groups of %d want several that make up the %d samples, one iteration and the standardised baseline", c.Group, c.Samples)
	for _, f := range []struct {
		name string
		v    float64
	}{{"clip", c.ClipEps}, {"entropy", c.Entropy}, {"value cost", c.ValueCost}} {
		all.If(!(f.v >= 0), "ppo: %s is %g, want at least 0", f.name, f.v)
	}
	all.If(c.Baseline < Standardised || c.Baseline > AverageReward, "ppo: unknown %v", c.Baseline)
	return errors.Join(all...)
}
