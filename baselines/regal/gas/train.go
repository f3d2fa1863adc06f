package gas

import (
	"context"
	"errors"
	"math/rand/v2"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/internal/faults"
	"placer/nn"
)

// Training says how to train.
type Training struct {
	Steps        int
	Samples      int // K, of one graph in a step
	Evaluations  int // of the search that rewards a sample
	LearningRate float64
	Entropy      float64
	Objective    sched.Objective
}

// DefaultTraining returns eight samples a step, rewarded by searches of 1,000
// evaluations as in the paper (A.14).
func DefaultTraining() Training {
	return Training{Steps: 1000, Samples: 8, Evaluations: 1000, LearningRate: 3e-3, Entropy: 0.002}
}

// validate reports every fault of t.
func (t Training) validate() error {
	var all faults.List
	all.If(t.Steps < 1 || t.Samples < 2 || t.Evaluations < 1, "gas: %d steps, %d samples, %d evaluations", t.Steps, t.Samples, t.Evaluations)
	all.If(!(t.LearningRate > 0) || !(t.Entropy >= 0), "gas: learning rate %g, entropy %g", t.LearningRate, t.Entropy)
	return errors.Join(all...)
}

// Step is a state of a training.
type Step struct {
	Step   int
	Reward float64 // mean over samples: -cost / cost with uniform distributions
}

// Train improves the policy on graph(k), k the step, with -cost over the cost of
// BRKGA with uniform distributions as reward (4.1). It stops after the step under
// way when ctx ends, without error. It panics if t is not valid.
func (p *Policy) Train(ctx context.Context, t Training, graph func(k int) (*sched.Problem, error), r *rand.Rand, report func(Step)) error {
	if err := t.validate(); err != nil {
		panic(err)
	}
	adam := nn.NewAdam(nn.DefaultAdam())
	for k := range t.Steps {
		if ctx.Err() != nil {
			return nil
		}
		q, err := graph(k)
		if err != nil {
			return err
		}
		reward, err := p.step(ctx, t, q, r, adam)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		report(Step{k, reward})
	}
	return nil
}

// step moves the weights by the gradient of one graph, unless ctx ends in it, and returns
// the mean reward.
func (p *Policy) step(ctx context.Context, t Training, q *sched.Problem, r *rand.Rand, adam *nn.Adam) (float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pin := propose.Heaviest(q, t.Objective)
	x := sequence(q, propose.NewFeatures(ctx, q, t.Objective, pin, propose.FeatureEvaluations, r))
	c, err := p.compile(x.N, true)
	if err != nil {
		return 0, err
	}
	c.graph.SetInput(c.input, x)
	if _, err := c.graph.Run(nil); err != nil {
		return 0, err
	}
	e := sched.NewEvaluator(q, t.Objective)
	budget := brkga.Budget{Evaluations: t.Evaluations}
	uniform := brkga.Run(ctx, e, brkga.Uniform{}, brkga.Default(), budget, r).Cost
	e.Pin(pin)
	loss := &propose.Reinforce{Space: p.space, Ops: q.N(), Entropy: t.Entropy}
	logits := c.graph.Output(0).Clone() // the runs below do not change it, the next does
	mean := 0.0
	var rewards []float64
	for range t.Samples {
		decisions, err := p.space.Sample(logits, q.N(), r)
		if err != nil {
			return 0, err
		}
		loss.Decisions = append(loss.Decisions, decisions)
		got := brkga.Run(ctx, e, p.space.Distributions(p.toOps(q, decisions)), brkga.Default(), budget, r)
		rewards = append(rewards, -got.Cost/uniform)
		mean -= got.Cost / uniform / float64(t.Samples)
	}
	for _, x := range rewards { // less the mean of the others
		loss.Advantage = append(loss.Advantage, (x-mean)*float64(t.Samples)/float64(t.Samples-1))
	}
	if _, err = c.graph.Run(loss); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		p.params.ZeroGrad()
		return mean, nil
	}
	_, err = adam.Step(p.params, t.LearningRate)
	return mean, err
}
