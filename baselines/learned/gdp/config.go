package gdp

import (
	"errors"
	"fmt"

	"placer/graph/unit"
	"placer/internal/faults"
	"placer/nn/gonet"
	"placer/placer/policy/features"
	"placer/ppo"
)

// Config describes the policy and its training.
type Config struct {
	Level    unit.Level // of the decisions; the paper's is unit.Op
	Features features.Config
	Training ppo.Config
	// LearningRate is Adam's; it falls linearly to a tenth over the budget.
	LearningRate float64
	// Graphs is the number of graphs that are trained on side by side, and Steps
	// the number of rounds before others are drawn.
	Graphs, Steps int
}

// One returns the configuration of GDP-one. Random columns that tell units apart
// stand for the paper's ids of adjacent nodes.
func One() Config {
	c := Batch()
	c.Features.Identity = 64
	return c
}

// Batch returns the configuration of GDP-batch, whose features carry over from
// graph to graph. Clip and steps are the paper's; rollouts and epochs are fewer, for
// budgets of thousands of trials. There is no entropy bonus: rewards soon differ
// from their average by a few hundredths, and the paper's 0.05 would outweigh
// them.
func Batch() Config {
	c := Config{Level: unit.Chain, Features: features.Default(), Training: ppo.Default(), LearningRate: 1e-4, Graphs: 4, Steps: 1000}
	c.Training.Baseline = ppo.AverageReward
	c.Training.Entropy = 0
	return c
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	all := faults.List{c.Features.Validate(), c.Training.Validate()}
	all.If(c.Level >= unit.NumLevels, "level %d does not exist", c.Level)
	all.If(!(c.LearningRate > 0), "learning rate is %g, want above 0", c.LearningRate)
	all.If(c.Training.Minibatches != 1, "%d minibatches, want 1: a small budget takes fewer samples", c.Training.Minibatches)
	all.If(c.Graphs < 1 || c.Steps < 1, "%d graphs and %d steps, want at least 1", c.Graphs, c.Steps)
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("gdp: %w", err)
	}
	return nil
}

// network is GDP's: tables 3 and 4, superposition in dense layers, one task, no
// refinement. The residual connections of the defaults stay; docs/papers.md says
// why they are there.
func (c Config) network(columns, devices int) gonet.Config {
	n := gonet.Default(columns, devices)
	n.Iterations = c.Training.Iterations
	n.Decision.ModulateDense = true
	return n
}
