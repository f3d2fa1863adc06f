package placer

import (
	"errors"
	"fmt"

	"placer/features"
	"placer/gonet"
	"placer/graph/unit"
	"placer/nn"
	"placer/plan"
	"placer/ppo"
)

// PolicyConfig describes the learned policy and its training on one graph
// (GO-one). It is stored in checkpoints.
type PolicyConfig struct {
	// Level is the granularity of decisions.
	Level unit.Level
	// Devices is the most devices the network can name; those beyond the machine's
	// are masked.
	Devices  int
	Features features.Config
	// ScheduleLevels are the levels of scheduling priority of a unit, in the middle
	// the scheduler as it is; the outermost move a unit's ops by ScheduleShift of
	// all ops up and down its order. Used when scheduling is decided.
	ScheduleLevels int
	ScheduleShift  float64
	// FusionLevels are the levels of fusion priority, the lowest for ops that are
	// not fused with their readers, of each of at most FusionKinds kinds of ops in a
	// unit. Used when fusion is decided.
	FusionLevels, FusionKinds int
	// Imitation is how placement alone is learnt beside PPO; by default not at all.
	Imitation ImitationConfig
	// Classes is how fusion is decided where the placement is given.
	Classes ClassConfig
	// Fusion is how fusion is learnt where it is all that is decided.
	Fusion FusionConfig
	// Joint is how placement is decided together with other tasks.
	Joint JointConfig
	// Prior is by how much the logit of the middle level of schedules and fusion
	// begins above the others'.
	Prior float64
	// Group is ppo.Config's, where several tasks are decided; Training's own is not
	// read.
	Group    int
	Training ppo.Config
	// LearningRate is Adam's, falling linearly to a tenth over the budget.
	LearningRate float64
	// EntropyEnd is the factor of the entropy bonus at the end of the budget; it
	// falls linearly from Training.Entropy.
	EntropyEnd float64
	// FreeLogits adds a logit per unit and device that belongs to this graph alone,
	// with a learning rate of its own: logits = network + free. The papers have
	// none (docs/papers.md says what they are worth).
	FreeLogits bool
	FreeRate   float64 // learning rate of the free logits
	// Curriculum trains on coarser units first, each stage starting from the one
	// before.
	Curriculum bool
	// The switches of the papers' ablations.
	Recurrence bool // segment-level recurrence
	Modulation bool // parameter superposition
	Attention  bool // the Transformer-XL layers at all
	Segment    int  // rows of a segment
	Workers    int  // goroutines that evaluate and multiply
}

// DefaultPolicy returns the configuration of the policy row.
func DefaultPolicy() PolicyConfig {
	c := PolicyConfig{
		Level: unit.Chain, Devices: 8, Features: features.Config{Harmonics: 6, Identity: 64},
		ScheduleLevels: 5, ScheduleShift: 0.25, FusionLevels: 6, FusionKinds: 16, Classes: DefaultClasses(), Fusion: DefaultFusion(), Joint: DefaultJoint(), Prior: 2, Group: 2,
		Training: ppo.Default(), LearningRate: 2e-3, EntropyEnd: 0,
		FreeLogits: true, FreeRate: 0.05, Curriculum: true,
		Recurrence: true, Modulation: true, Attention: true, Segment: 256, Workers: 1,
	}
	c.Training.Samples, c.Training.Epochs, c.Training.Entropy = 64, 4, 0.01
	return c
}

// Validate reports every fault.
func (c PolicyConfig) Validate() error {
	errs := []error{c.Features.Validate(), c.Training.Validate(), c.Imitation.Validate(), c.Classes.Validate(), c.Fusion.Validate(), c.Joint.Validate()}
	if c.Level >= unit.NumLevels {
		errs = append(errs, fmt.Errorf("policy: level %d does not exist", c.Level))
	}
	if c.Devices < 1 || c.Devices > 64 {
		errs = append(errs, fmt.Errorf("policy: %d devices, want 1 to 64", c.Devices))
	}
	if !(c.LearningRate > 0) || !(c.FreeRate > 0) || !(c.EntropyEnd >= 0) {
		errs = append(errs, fmt.Errorf("policy: learning rates %g and %g must be positive, final entropy %g not negative", c.LearningRate, c.FreeRate, c.EntropyEnd))
	}
	if c.ScheduleLevels < 1 || c.ScheduleLevels > 64 || !(c.ScheduleShift >= 0 && c.ScheduleShift <= 1) {
		errs = append(errs, fmt.Errorf("policy: %d schedule levels that shift %g of all ops, want 1 to 64 and 0 to 1", c.ScheduleLevels, c.ScheduleShift))
	}
	if c.FusionLevels < 2 || c.FusionLevels > 255 || c.FusionKinds < 1 || c.FusionKinds > 254 {
		errs = append(errs, fmt.Errorf("policy: %d fusion levels, %d kinds, want 2 to 255 and 1 to 254", c.FusionLevels, c.FusionKinds))
	}
	if c.Segment < 1 || c.Workers < 1 {
		errs = append(errs, fmt.Errorf("policy: segment %d and workers %d must be at least 1", c.Segment, c.Workers))
	}
	return errors.Join(errs...)
}

// network returns the configuration of the network for f columns and what d
// decodes.
func (c PolicyConfig) network(f int, d *decoder) gonet.Config {
	n := gonet.Default(f, 0)
	if d.tasks.Has(plan.Place) {
		n.Decision.Choices = c.Devices
	}
	if d.tasks.Has(plan.Schedule) {
		n.Decision.ScheduleLevels = c.ScheduleLevels
	}
	if d.tasks.Has(plan.Fuse) {
		n.Decision.FusionLevels, n.Decision.FusionKinds = c.FusionLevels, d.kinds
	}
	n.Iterations = c.Training.Iterations
	n.Decision.Segment = c.Segment
	n.Decision.Memory = 0
	if c.Recurrence {
		n.Decision.Memory = c.Segment
	}
	n.Decision.Modulation = c.Modulation
	n.Decision.Attention = c.Attention
	return n
}

// backend returns the arithmetic to use, on d if it is not nil.
func (c PolicyConfig) backend(d nn.Device) (*nn.Backend, error) {
	b := nn.Default()
	b.Device = d
	b.Workers = c.Workers
	return nn.NewBackend(b)
}
