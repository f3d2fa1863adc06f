package goone

import (
	"errors"

	"placer/graph/unit"
	"placer/internal/faults"
	"placer/placer/policy/features"
	"placer/ppo"
)

// Config describes a Policy. It is stored in checkpoints.
type Config struct {
	// Level is the granularity of the finest decisions.
	Level unit.Level
	// Samples is the number of plans in a round, at least 1. A budget too small for
	// eight rounds halves it, down to 8.
	Samples int
	// Epochs is the number of PPO's gradient steps after each round, at least 1.
	Epochs int
	// Iterations is how often a decision is refined, T in GO; at least 1, which refines
	// nothing.
	Iterations int
	// ClipEps bounds PPO's probability ratio to 1 ± ClipEps.
	ClipEps float64
	// Entropy is the factor of PPO's entropy bonus; it falls linearly to 0 over a stage.
	Entropy float64
	// LearningRate is Adam's; it falls linearly to a tenth over a stage.
	LearningRate float64
	// InstanceRate is the learning rate of per-instance logits, one per unit and choice
	// that belong to this graph alone: logits = network + instance. 0 has none, as the
	// papers (docs/papers.md says what they are worth).
	InstanceRate float64
	// Curriculum trains on coarser units first (adr/0008). The papers have none.
	Curriculum bool
	// Identity is the number of random columns that tell like units apart; 0 has none.
	Identity int
	// Recurrence, Modulation and Attention are the parts of the network that the papers
	// leave out in their ablations: segment-level recurrence, parameter superposition,
	// the attention of the Transformer-XL layers.
	Recurrence, Modulation, Attention bool
	// Segment is the number of rows, units, of a segment; at least 1.
	Segment int
	// Workers is the number of goroutines that evaluate and multiply, at least 1. It
	// changes no result.
	Workers int
}

// Default returns the configuration of the row GO-one.
func Default() Config {
	return Config{
		Level: unit.Chain, Samples: 64, Epochs: 4, Iterations: 1, ClipEps: 0.2, Entropy: 0.01, LearningRate: 2e-3,
		InstanceRate: 0.05, Curriculum: true, Identity: 64,
		Recurrence: true, Modulation: true, Attention: true, Segment: 256, Workers: 1,
	}
}

// Validate reports every fault.
func (c Config) Validate() error {
	errs := faults.List{c.ppo(c.Samples, 1).Validate(), c.features().Validate()}
	errs.If(c.Level >= unit.NumLevels, "policy: level %d does not exist", c.Level)
	errs.If(!(c.LearningRate > 0) || !(c.InstanceRate >= 0), "policy: learning rate %g must be positive, that of instances %g not negative", c.LearningRate, c.InstanceRate)
	errs.If(c.Segment < 1 || c.Workers < 1, "policy: segment %d and workers %d must be at least 1", c.Segment, c.Workers)
	return errors.Join(errs...)
}

// ppo returns the trainer's configuration for rounds of samples plans. Where several
// tasks are decided, samples come in pairs with the choices of the first task in
// common (adr/0010).
func (c Config) ppo(samples, tasks int) ppo.Config {
	p := ppo.Config{Samples: samples, Iterations: c.Iterations, Epochs: c.Epochs, Minibatches: 1, ClipEps: c.ClipEps, Entropy: c.Entropy}
	if tasks > 1 && c.Iterations == 1 && samples%2 == 0 && samples > 2 {
		p.Group = 2
	}
	return p
}

// harmonics is the number of cosine columns of a unit's place in its order.
const harmonics = 6

func (c Config) features() features.Config {
	return features.Config{Harmonics: harmonics, Identity: c.Identity}
}
