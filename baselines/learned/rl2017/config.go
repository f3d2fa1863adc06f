package rl2017

import (
	"errors"
	"fmt"

	"placer/baselines/learned/reinforce"
	"placer/internal/faults"
)

// Config describes the policy and its training.
type Config struct {
	Controllers int // that share the parameters
	Samples     int // K, the workers of a controller: placements of a gradient
	// Measured is the number of steps that a worker runs a placement for; it scales
	// the simulated clock alone.
	Measured int
	Groups   int // the most co-location groups
	Width    int // of the network
	// Aligned tells the decoder the encoder's state at the group it places; see
	// seq2seq.Config.
	Aligned      bool
	LearningRate float64 // Adam's; falls linearly to a tenth over the budget
	Entropy      float64 // factor of an entropy bonus; the paper has none
	Signal       reinforce.SignalConfig
}

// Default returns what the experiment in experiments/learned-rivals uses.
func Default() Config {
	return Config{Controllers: 4, Samples: 4, Measured: 10, Groups: 256, Width: 64, Aligned: true, LearningRate: 5e-3, Signal: reinforce.DefaultSignal()}
}

// validate reports every fault of c.
func (c Config) validate() error {
	all := faults.List{c.Signal.Validate()}
	for _, f := range []struct {
		name   string
		v, low int
	}{{"controllers", c.Controllers, 1}, {"samples", c.Samples, 1}, {"measured steps", c.Measured, 1}, {"groups", c.Groups, 1}, {"width", c.Width, 2}} {
		all.If(f.v < f.low, "%s is %d, want at least %d", f.name, f.v, f.low)
	}
	all.If(c.Width%2 != 0, "width is %d, want an even number", c.Width)
	all.If(!(c.LearningRate > 0) || !(c.Entropy >= 0), "learning rate is %g and entropy %g, want above 0 and at least 0", c.LearningRate, c.Entropy)
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("rl-2017: %w", err)
	}
	return nil
}
