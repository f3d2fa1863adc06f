package sequential

import (
	"errors"
	"math"

	"placer/internal/faults"
	"placer/placer/corpus/families"
)

// PretrainConfig describes a pretraining run. It is stored in checkpoints; a run
// goes on only under the configuration that it began with.
type PretrainConfig struct {
	Policy Config `json:"policy"`
	// Families to draw graphs from; empty means all.
	Families []string `json:"families"`
	// HeldOut families stay out, and so do their kin.
	HeldOut []string `json:"held_out"`
	// Imitation steps come first: each learns the decisions of a search's plans on
	// Batch graphs.
	Imitation     int     `json:"imitation"`
	Batch         int     `json:"batch"`
	ImitationRate float64 `json:"imitation_rate"`
	// Steps of joint PPO follow: each makes Samples rollouts of one graph and takes
	// Epochs steps of the gradient.
	Steps int `json:"steps"`
	// TaskSteps on schedule and fusion come last, where the policy has an encoder.
	TaskSteps int     `json:"task_steps"`
	Samples   int     `json:"samples"`
	Epochs    int     `json:"epochs"`
	Rate      float64 `json:"rate"`    // learning rate, falling linearly to a tenth
	Clip      float64 `json:"clip"`    // of PPO's ratio of probabilities
	Entropy   float64 `json:"entropy"` // weight of PPO's entropy bonus
	// Alike is the number of rollouts by each prior in a step of self-labelling, which
	// imitates the best of them in the place of PPO; 0 is PPO.
	Alike int `json:"alike"`
	// Prior weighs the divergence from what the heuristic priors choose.
	Prior float64 `json:"prior"`
	// Pool is the number of graphs of a family that are in use at a time; a new one
	// takes the place of the oldest every Renew steps.
	Pool     int `json:"pool"`
	Renew    int `json:"renew"`
	MostRows int `json:"most_rows"` // decisions times devices of a graph
	// Judged is the number of graphs of each family on which all proposals are tried
	// at the end, to choose those that are worth making (Policy.Direct).
	Judged int    `json:"judged"`
	Seed   uint64 `json:"seed"`
	// Corpus is the fingerprint of Host.Problems; empty where problems are drawn and
	// the teacher is asked. Problems of a corpus may have more than MostRows.
	Corpus string `json:"corpus,omitempty"`
}

// DefaultPretrain returns the configuration of the policies in experiments.
func DefaultPretrain() PretrainConfig {
	return PretrainConfig{
		Policy: DefaultConfig(), Imitation: 60, Batch: 4, ImitationRate: 1e-3,
		Steps: 5000, TaskSteps: 1000, Samples: 16, Epochs: 2, Rate: 1e-3, Clip: 0.2, Prior: 0.02,
		Pool: 16, Renew: 40, MostRows: 2400, Judged: 6, Seed: 1,
	}
}

// Total returns the number of steps: of imitation, of placement, and of the other tasks
// where the policy decides them.
func (c PretrainConfig) Total() int {
	if x := c.Policy.Encoder; x != nil && x.TransformerXL.ScheduleLevels+x.TransformerXL.FusionLevels > 0 {
		return c.Imitation + c.Steps + c.TaskSteps
	}
	return c.Imitation + c.Steps
}

// Validate reports every fault.
func (c PretrainConfig) Validate() error {
	var errs faults.List
	if _, err := c.sources(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Policy.Validate())
	errs.If(c.Imitation < 0 || c.Steps < 0 || c.TaskSteps < 0 || c.Imitation+c.Steps == 0, "pretrain: %d steps of imitation and %d of PPO, want some", c.Imitation, c.Steps)
	errs.If(c.Batch < 1 || c.Samples < 2 || c.Epochs < 1 || c.Pool < 1 || c.Renew < 1 || c.MostRows < 1 || c.Judged < 0, "pretrain: batch %d, epochs %d, pool %d, renew %d and rows %d must be at least 1, samples %d at least 2 and judged graphs %d not negative", c.Batch, c.Epochs, c.Pool, c.Renew, c.MostRows, c.Samples, c.Judged)
	errs.If(c.Alike < 0 || c.Alike == 1 || c.Alike > c.Samples, "pretrain: %d rollouts by each prior, want 0, or 2 to the %d samples", c.Alike, c.Samples)
	errs.If(!(c.ImitationRate > 0) || !(c.Rate > 0) || !(c.Clip > 0) || !(c.Entropy >= 0) || !(c.Prior >= 0), "pretrain: learning rates %g and %g and clip %g must be positive, entropy %g and prior %g not negative", c.ImitationRate, c.Rate, c.Clip, c.Entropy, c.Prior)
	errs.If(math.IsInf(c.ImitationRate+c.Rate+c.Clip+c.Entropy+c.Prior, 1), "pretrain: learning rates %g and %g, clip %g, entropy %g and prior %g must be finite", c.ImitationRate, c.Rate, c.Clip, c.Entropy, c.Prior)
	return errors.Join(errs...)
}

// sources returns the families to train on.
func (c PretrainConfig) sources() ([]families.Family, error) {
	all := families.Papers()
	if c.Corpus != "" {
		all = families.All()
	}
	return families.Choose(all, c.Families, c.HeldOut)
}
