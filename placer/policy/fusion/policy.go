package fusion

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"placer/graph/unit"
	"placer/placer/policy/cem"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// Policy decides on fusion where that alone is asked for. It implements plan.Placer.
type Policy struct{ Config Config }

// Name is as plan.Placer says.
func (Policy) Name() string { return "fusion by class" }

// Kind is as plan.Placer says.
func (Policy) Kind() plan.Kind { return plan.Policy }

// stage is one granularity of what is learnt.
type stage struct {
	classes *classes
	end     float64 // share of the budget at which it ends
	// differs says that levels are learnt by difference rewards, not by class values.
	differs bool
}

// learner is the policy at work on one problem.
type learner struct {
	Config
	ctx     context.Context
	run     *rollout.Run
	random  *rand.Rand
	samples int
	kernels []plan.KernelCosts // of each worker
	fusion  [][]uint8          // [workers][N] scratch
	weight  []float64          // [D] of a second on each device, by the best plan's critical path
}

// Place learns until the budget is spent and returns the best plan that was sampled.
func (x Policy) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return x.Config.learn(ctx, p, x.Name(), func(alike, timed, segments, single *classes) (chances, []stage) {
		// Half of the budget goes to the first stage, which learns everything from
		// nothing. The others begin with what it found: the second still learns values
		// of its own, which takes more samples than the differences of the last two.
		return newChances(len(alike.ops)), []stage{{alike, 0.5, false}, {timed, 0.7, false}, {segments, 0.85, true}, {single, 1, true}}
	})
}

// Refiner decides on single ops from the fusion that the problem has, as the last
// stage of Policy does. It implements plan.Placer.
type Refiner struct{ Config Config }

// Name is as plan.Placer says.
func (Refiner) Name() string { return "fusion refinement" }

// Kind is as plan.Placer says.
func (Refiner) Kind() plan.Kind { return plan.Policy }

// Place learns until the budget is spent and returns the best plan that was sampled.
func (x Refiner) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	if len(p.Fusion) != p.Graph.NumOps() {
		return nil, errors.New("policy: no fusion to refine")
	}
	return x.Config.learn(ctx, p, x.Name(), func(alike, _, _, single *classes) (chances, []stage) {
		return newChances(len(alike.ops)).finer(alike, single, p.Fusion), []stage{{single, 1, true}}
	})
}

// learn goes through the stages that begin returns, from the chances of the first.
func (c Config) learn(ctx context.Context, p *plan.Problem, name string, begin func(alike, timed, segments, single *classes) (chances, []stage)) (*plan.Outcome, error) {
	switch err := c.Validate(); {
	case err != nil:
		return nil, err
	case p.Tasks != plan.Fuse:
		return nil, fmt.Errorf("policy: tasks are %v, fusion by class decides fuse alone", p.Tasks)
	case p.Kernels == nil:
		return nil, errors.New("policy: fusion by class without kernel costs")
	}
	run, err := rollout.New(p, name, c.Workers)
	if err != nil {
		return nil, err
	}
	l := &learner{Config: c, ctx: ctx, run: run, random: rand.New(rand.NewPCG(p.Seed, 0x667573)), samples: rollout.FitSamples(c.Samples, p.Budget.Evaluations)}
	for range run.Workers() {
		l.kernels, l.fusion = append(l.kernels, p.Kernels()), append(l.fusion, make([]uint8, p.Graph.NumOps()))
	}
	l.weight = slices.Repeat([]float64{1}, p.Machine.NumDevices())
	alike := newClasses(p.Graph, p.Evaluator.OpSeconds(0), mostClasses)
	timed := alike.split(times(p.Units))
	segments := timed.split(p.Units.Levels[unit.Segment].Of)
	chance, stages := begin(alike, timed, segments, segments.single())
	for k, s := range stages {
		if k > 0 && run.Best != nil {
			chance = chance.finer(stages[k-1].classes, s.classes, run.Best.Fusion)
		}
		l.stage(s, chance, k > 0)
	}
	return run.Outcome(ctx)
}

// teacher tells what the levels of classes are worth.
type teacher interface {
	// learn takes in a round of samples and the best plan after it.
	learn(actions [][]int32, scores []plan.Score, best *plan.Decision, step float64)
	// adjust changes the chances of class c that imitation comes to when a share of spent
	// of the budget is used up.
	adjust(c int, chance []float64, spent float64)
}

// stage samples until a share of s.end of the budget is spent. fine says that it is
// not the first.
func (l *learner) stage(s stage, chance chances, fine bool) {
	l.run.Decodes(func(action []int32, to *rollout.Candidate) { s.classes.decode(action, to.Fusion) })
	elites := cem.NewElites(l.Window, l.Elite)
	var t teacher = newValues(l, s.classes, fine)
	mix := l.Mix
	if s.differs {
		t, mix = newDifferences(l, s.classes), differencesMix
	}
	for !l.run.Done(l.ctx) && (l.run.Spent() < s.end || l.run.Best == nil) {
		actions := make([][]int32, l.samples)
		for k := range actions {
			actions[k] = chance.sample(l.random)
		}
		if l.run.Evaluate(l.ctx, actions) != nil {
			return
		}
		elites.Add(actions, l.run.Scores)
		t.learn(actions, l.run.Scores, &l.run.Best.Decision, l.run.Score.Value)
		chance.follow(elites.Best(), mix, func(c int, q []float64) { t.adjust(c, q, l.run.Spent()) })
	}
}

// price returns the kernels of the sample action of x and what each takes, as
// kernels of worker k tell it, and its fusion.
func (l *learner) price(k int, x *classes, action []int32) (fusion []uint8, kernel []int32, takes []float64) {
	fusion = l.fusion[k]
	x.decode(action, fusion)
	kernel, takes = l.kernels[k].Fuse(l.run.Problem.Device, fusion)
	return fusion, kernel, takes
}
