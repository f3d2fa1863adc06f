package hdp

import (
	"errors"
	"fmt"

	"placer/baselines/learned/reinforce"
	"placer/graph/unit"
	"placer/internal/faults"
)

// Config describes the two policies and their training.
type Config struct {
	// Level is what the grouper groups: the paper's is unit.Op.
	Level   unit.Level
	Samples int // placements of a round
	// Groups is the number of groups. 0 takes 20 for each device, at most 256, and
	// no more than there are entities.
	Groups int
	Hidden int // width of the grouper's hidden layer
	Width  int // of the placer
	// Sharpness of the grouper before training: 0 starts from random groups, as the
	// paper does; above 0 an op starts in one of the groups around its place in
	// topological order, the nearer ones by this factor of the squared distance.
	Sharpness float64
	// Aligned tells the decoder the encoder's state at the group it places; see
	// seq2seq.Config.
	Aligned      bool
	LearningRate float64 // Adam's; falls linearly to a tenth over the budget
	Entropy      float64 // factor of an entropy bonus of both policies; the paper has none
	Signal       reinforce.SignalConfig
}

// Default returns what the experiment in experiments/learned-rivals uses. The
// number of groups and the grouper's width are those of the controller that the
// authors published.
func Default() Config {
	c := Config{Level: unit.Cell, Samples: 16, Hidden: 64, Width: 64, Sharpness: 4, Aligned: true, LearningRate: 1e-3, Signal: reinforce.DefaultSignal()}
	c.Signal.FirstMean = true
	return c
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	all := faults.List{c.Signal.Validate()}
	all.If(c.Level >= unit.NumLevels, "level %d does not exist", c.Level)
	for _, f := range []struct {
		name   string
		v, low int
	}{{"samples", c.Samples, 1}, {"groups", c.Groups, 0}, {"hidden width", c.Hidden, 2}, {"width", c.Width, 2}} {
		all.If(f.v < f.low, "%s is %d, want at least %d", f.name, f.v, f.low)
	}
	all.If(c.Width%2 != 0, "width is %d, want an even number", c.Width)
	all.If(!(c.LearningRate > 0) || !(c.Entropy >= 0) || !(c.Sharpness >= 0), "learning rate is %g, entropy %g and sharpness %g, want above 0, and the others at least 0", c.LearningRate, c.Entropy, c.Sharpness)
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("hdp: %w", err)
	}
	return nil
}

// groups returns the number of groups for this many entities and devices.
func (c Config) groups(entities, devices int) int {
	n := c.Groups
	if n == 0 {
		n = min(256, 20*devices)
	}
	return min(n, entities)
}
