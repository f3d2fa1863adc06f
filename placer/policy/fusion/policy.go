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
	teacher func(*learner, *classes) teacher
}

// granularities are the classes of a graph's ops, each the one before taken apart: ops
// alike, by place in time, by segment, and single ops.
type granularities struct{ alike, timed, segments, single *classes }

func newGranularities(p *plan.Problem) (x granularities) {
	x.alike = newClasses(p.Graph, p.Evaluator.OpSeconds(0), mostClasses)
	x.timed = x.alike.split(times(p.Units))
	x.segments = x.timed.split(p.Units.Levels[unit.Segment].Of)
	x.single = x.segments.single()
	return x
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
//
// Half of the budget goes to the first stage, which learns everything from nothing. The
// others begin with what it found: the second still learns values of its own, which takes
// more samples than the differences of the last two.
func (x Policy) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	l, err := x.Config.learner(ctx, p, x.Name())
	if err != nil {
		return nil, err
	}
	by := newGranularities(p)
	return l.learn(newDistribution(len(by.alike.ops)), []stage{
		{by.alike, 0.5, byValues(explore)}, {by.timed, 0.7, byValues(explore * finer)},
		{by.segments, 0.85, byDifferences}, {by.single, 1, byDifferences},
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
	l, err := x.Config.learner(ctx, p, x.Name())
	if err != nil {
		return nil, err
	}
	by := newGranularities(p)
	return l.learn(newDistribution(len(by.alike.ops)).finer(by.alike, by.single, p.Fusion), []stage{{by.single, 1, byDifferences}})
}

// learner returns the policy at work on p, which must ask for fusion alone.
func (c Config) learner(ctx context.Context, p *plan.Problem, name string) (*learner, error) {
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
	return l, nil
}

// learn goes through the stages, from the distribution of the first.
func (l *learner) learn(d distribution, stages []stage) (*plan.Outcome, error) {
	for k, s := range stages {
		if k > 0 && l.run.Best != nil {
			d = d.finer(stages[k-1].classes, s.classes, l.run.Best.Fusion)
		}
		l.stage(s, d)
	}
	return l.run.Outcome(l.ctx)
}

// teacher tells what the levels of classes are worth.
type teacher interface {
	// learn takes in a round of samples and the best plan after it.
	learn(actions [][]int32, scores []plan.Score, best *plan.Decision, step float64)
	// mix is how far a round moves the probabilities to those of the best samples.
	mix() float64
	// adjust changes the probabilities of class c that imitation comes to when a share of spent
	// of the budget is used up.
	adjust(c int, probability []float64, spent float64)
}

// stage samples until a share of s.end of the budget is spent.
func (l *learner) stage(s stage, d distribution) {
	l.run.Decodes(func(action []int32, to *rollout.Candidate) { s.classes.decode(action, to.Fusion) })
	elites, t := cem.NewElites(l.Window, l.Elite), s.teacher(l, s.classes)
	for !l.run.Done(l.ctx) && (l.run.Spent() < s.end || l.run.Best == nil) {
		actions := make([][]int32, l.samples)
		for k := range actions {
			actions[k] = d.sample(l.random)
		}
		if l.run.Evaluate(l.ctx, actions) != nil {
			return
		}
		elites.Add(actions, l.run.Scores)
		t.learn(actions, l.run.Scores, &l.run.Best.Decision, l.run.Score.Value)
		d.update(elites.Best(), t.mix(), func(c int, q []float64) { t.adjust(c, q, l.run.Spent()) })
	}
}

// priced is a plan as the kernels it has.
type priced struct {
	fusion []uint8   // [N]
	kernel []int32   // [N] of each op
	takes  []float64 // [K] seconds of each kernel
}

// price returns the sample action of x with its kernels, as those of worker k tell them.
// It is valid until the worker's next.
func (l *learner) price(k int, x *classes, action []int32) priced {
	y := priced{fusion: l.fusion[k]}
	x.decode(action, y.fusion)
	y.kernel, y.takes = l.kernels[k].Fuse(l.run.Problem.Device, y.fusion)
	return y
}
