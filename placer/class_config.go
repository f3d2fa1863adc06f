package placer

import (
	"fmt"

	"placer/plan"
)

// ClassConfig describes how a policy decides on fusion where the placement is
// given: for classes of ops of like surroundings, not for kinds in each unit. The
// values replace those of PolicyConfig.
type ClassConfig struct {
	Most int // classes; 0: by kinds in each unit
	// Imitation is how fusion is learnt with the schedule. Alone it is as
	// FusionConfig says.
	Imitation ImitationConfig

	Levels  int // of fusion priority
	Samples int // of a round, at most
	Entropy float64
	// FreeRate is the learning rate of the free logits.
	FreeRate float64
	// LocalCredit is the share, in what a choice learns from, of the time that goes
	// by near the ops that it is about; the rest is the whole step. It falls to 0
	// over the budget, and is 0 where the evaluator does not tell.
	LocalCredit float64
}

// DefaultClasses returns the configuration of go-figure6.
func DefaultClasses() ClassConfig {
	return ClassConfig{Most: 384, Imitation: ImitationConfig{Window: 1000, Elite: 0.1, Mix: 0.3}, Levels: 4, Samples: 32, Entropy: 0.003, FreeRate: 0.15, LocalCredit: 0.5}
}

// Validate reports a fault.
func (c ClassConfig) Validate() error {
	if c.Most == 0 {
		return nil
	}
	if err := c.Imitation.Validate(); err != nil {
		return err
	}
	if c.Most < 0 || c.Levels < 2 || c.Levels > 255 || c.Samples < 1 || !(c.Entropy >= 0) || !(c.FreeRate > 0) || !(c.LocalCredit >= 0 && c.LocalCredit <= 1) {
		return fmt.Errorf("policy: classes of fusion %+v: want 2 to 255 levels, positive samples and rate, an entropy not below 0, a share of credit from 0 to 1", c)
	}
	return nil
}

// decidesByClass reports whether fusion is decided by class.
func (c PolicyConfig) decidesByClass(tasks plan.Tasks) bool {
	return c.Classes.Most > 0 && tasks.Has(plan.Fuse) && !tasks.Has(plan.Place)
}

// fusesAlone reports whether fusion is all that is decided, as Fusion says.
func (c PolicyConfig) fusesAlone(tasks plan.Tasks) bool {
	return tasks == plan.Fuse && c.decidesByClass(tasks) && c.imitation(tasks).Window > 0
}

// imitation returns how the policy imitates its best samples where it decides
// tasks.
func (c PolicyConfig) imitation(tasks plan.Tasks) ImitationConfig {
	switch {
	case !c.FreeLogits || c.Training.Iterations > 1:
	case c.decidesByClass(tasks) && tasks == plan.Fuse:
		return c.Fusion.Imitation
	case c.decidesByClass(tasks):
		return c.Classes.Imitation
	case isJoint(tasks):
		return c.Joint.Imitation
	case tasks == plan.Place:
		return c.Imitation
	}
	return ImitationConfig{}
}

// forTasks returns c with the values of Fusion, Classes or Joint, where they hold.
func (c PolicyConfig) forTasks(p *plan.Problem) PolicyConfig {
	switch {
	case c.fusesAlone(p.Tasks):
		c.FusionLevels, c.LearningRate, c.FreeRate = c.Fusion.Levels, c.Fusion.LearningRate, c.Fusion.FreeRate
		c.Training.Entropy = c.Classes.Entropy
		c.atMost(c.Fusion.Samples)
	case c.decidesByClass(p.Tasks):
		c.FusionLevels, c.FreeRate = c.Classes.Levels, c.Classes.FreeRate
		c.Training.Entropy = c.Classes.Entropy
		c.atMost(c.Classes.Samples)
	case isJoint(p.Tasks):
		c.Prior = c.Joint.Prior
		c.atMost(c.Joint.Samples)
	}
	return c
}

// atMost bounds the samples of a round by n, where minibatches divide that.
func (c *PolicyConfig) atMost(n int) {
	if c.Training.Samples > n && n%c.Training.Minibatches == 0 {
		c.Training.Samples = n
	}
}
