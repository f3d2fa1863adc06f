package cem

import (
	"context"
	"math/rand/v2"

	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// Policy begins with probabilities all alike. Where placement is decided and the problem has
// one, one of the curricula begins at it. It implements plan.Placer.
type Policy struct{ Config Config }

// Name is as plan.Placer says.
func (Policy) Name() string { return "cross-entropy" }

// Kind is as plan.Placer says.
func (Policy) Kind() plan.Kind { return plan.Policy }

// Place samples until the budget is spent and returns the best plan.
func (x Policy) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	seconds, devices := p.Evaluator.OpSeconds(0), p.Machine.NumDevices()
	all := curriculum.Curricula(p.Graph, p.Units, x.Config.Level, seconds, devices)
	switch {
	case !p.Decides(plan.Place):
		all = all[:1] // the others are other ways to cut a graph into places
	case len(p.Device) == p.Graph.NumOps():
		all = append(all, curriculum.Near(all[0], p.Device, devices))
	}
	return x.Config.learn(ctx, p, x.Name(), all)
}

// Refiner is Policy near the placement that the problem has. It implements plan.Placer.
type Refiner struct{ Config Config }

// Name is as plan.Placer says.
func (Refiner) Name() string { return "cross-entropy refinement" }

// Kind is as plan.Placer says.
func (Refiner) Kind() plan.Kind { return plan.Policy }

// Place samples until the budget is spent and returns the best plan.
func (x Refiner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	seconds, devices := p.Evaluator.OpSeconds(0), p.Machine.NumDevices()
	all := curriculum.Curricula(p.Graph, p.Units, x.Config.Level, seconds, devices)[:1]
	all[0] = curriculum.Near(all[0], p.Device, devices)
	return x.Config.learn(ctx, p, x.Name(), all)
}

// learner is a policy at work on one problem.
type learner struct {
	Config
	ctx     context.Context
	run     *rollout.Run
	decoder *rollout.Decoder
	random  *rand.Rand
	seconds []float64 // [N] op times
	samples int       // of a round
}

// learn goes through the curricula.
func (c Config) learn(ctx context.Context, p *plan.Problem, name string, all [][]curriculum.Stage) (*plan.Outcome, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	run, err := rollout.New(p, name, c.Workers)
	if err != nil {
		return nil, err
	}
	l := &learner{
		Config: c, ctx: ctx, run: run, decoder: rollout.NewDecoder(p), random: rand.New(rand.NewPCG(p.Seed, 0x63656d)),
		seconds: p.Evaluator.OpSeconds(0), samples: rollout.FitSamples(c.Samples, p.Budget.Evaluations),
	}
	run.Decodes(l.decoder.Decode)
	walk := curriculum.Walk{Curricula: all, At: new(curriculum.Position), Run: run, Train: l.train}
	return run.Ended(ctx, walk.Begin())
}

// train is as curriculum.Train says.
func (l *learner) train(leg curriculum.Leg) (curriculum.Logits, error) {
	l.decoder.On(leg.Units, leg.OneFusion)
	x, err := l.start(leg.Stage, leg.From)
	if err != nil {
		return nil, err
	}
	elites := NewElites(l.Window, l.Elite)
	for !l.run.Done(l.ctx) && (l.run.Spent() < leg.End || l.run.Best == nil) {
		actions := make([][]int32, l.samples)
		for k := range actions {
			actions[k] = x.sample(l.random)
		}
		if l.run.Evaluate(l.ctx, actions) != nil {
			break
		}
		elites.Add(actions, l.run.Scores)
		x.update(elites.Best(), l.Mix)
	}
	return x.logits(), nil
}
