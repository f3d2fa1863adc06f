package sequential

import (
	"context"
	"errors"

	"placer/internal/faults"
	"placer/plan"
)

// PPOTuner places with a pretrained policy whose network goes on learning on the
// graph at hand by PPO, as GO and GDP fine-tune theirs, in fewer than 50 steps. All
// weights learn, GraphSAGE and attention among them, and so does a residual embedding of
// each unit, zero at first. Levels, samples, perturbations and elite are Tuner's; it begins
// with a Placer's samples besides, and learns from its best placements as annealing improves
// them.
type PPOTuner struct {
	Policy *Policy // not changed
	Config PPOConfig
	// Sparing is Tuner's.
	Sparing bool
}

// PPOConfig describes the learning.
type PPOConfig struct {
	TuneConfig // of the steps and their samples; Rate is the embeddings'
	// PPOSamples is the number of a step's placements that PPO's objective is taken of,
	// evenly from those that were evaluated, in the order of their own schedules.
	PPOSamples  int
	Epochs      int     // steps of the gradient in a step, where the embeddings alone would take 15
	NetworkRate float64 // learning rate of the network's weights, Adam's
	Clip        float64 // bounds the ratio of probabilities to 1 ± Clip (arXiv:1707.06347v2, Eq. 7)
	Improvement Improvement
}

// DefaultPPO returns 49 steps at the rate of pretraining.
func DefaultPPO() PPOConfig {
	return PPOConfig{TuneConfig: DefaultTune(), PPOSamples: 32, Epochs: 5, NetworkRate: 1e-3, Clip: 0.2,
		Improvement: Improvement{Placements: 2, Share: 0.75}}
}

// Validate reports every fault.
func (c PPOConfig) Validate() error {
	errs := faults.List{c.TuneConfig.Validate(), c.Improvement.validate()}
	errs.If(c.PPOSamples < 0 || c.Epochs < 1, "finetune: %d placements to learn from by PPO in %d epochs, want none or more in at least 1", c.PPOSamples, c.Epochs)
	errs.If(!(c.NetworkRate >= 0) || !(c.Clip > 0), "finetune: rate %g of the network must not be negative, clip %g must be positive", c.NetworkRate, c.Clip)
	return errors.Join(errs...)
}

var _ plan.Placer = PPOTuner{}

// Name returns "fine-tuned-ppo".
func (PPOTuner) Name() string { return "fine-tuned-ppo" }

// Kind returns plan.Policy.
func (PPOTuner) Kind() plan.Kind { return plan.Policy }

// Place samples zero-shot, then alternates between sampling and learning until the steps
// or the budget are done, and returns the best placement that was made.
func (t PPOTuner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if err := t.Config.Validate(); err != nil {
		return nil, err
	}
	policy, err := t.Policy.clone()
	if err != nil {
		return nil, err
	}
	return Tuner{Policy: policy, Config: t.Config.TuneConfig, Sparing: t.Sparing, improvement: t.Config.Improvement}.place(ctx, p, t.Name(), newPPOLearner(policy, t.Config))
}
