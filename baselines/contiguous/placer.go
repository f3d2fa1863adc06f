package contiguous

import (
	"context"

	"placer/baselines/judge"
	"placer/maxload"
	"placer/plan"
)

// Placer cuts the graph into stages of least maximum load.
type Placer struct {
	// Linear cuts topological orders alone, as PipeDream cuts its chain of layers
	// (Narayanan et al., SOSP 2019, section 3.1); otherwise all downsets count.
	Linear bool
	Config Config
}

var _ plan.Placer = Placer{}

// Name returns "contiguous", or "pipedream" for linear cuts.
func (p Placer) Name() string {
	if p.Linear {
		return "pipedream"
	}
	return "contiguous"
}

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// downsetsInSearch is the most downsets that a row of a search waits for: a
// second or two.
const downsetsInSearch = 20_000

// Place evaluates the split, or everything on one device where no split fits.
func (p Placer) Place(ctx context.Context, problem *plan.Problem) (*plan.Outcome, error) {
	c := p.Config
	if c.Downsets == 0 {
		c.Downsets = downsetsInSearch
	}
	c.Linear = p.Linear
	j := judge.New(ctx, problem, p.Name())
	s := maxload.FromProblem(problem)
	r, err := Solve(ctx, s, c)
	switch {
	case err == ErrNothingFits:
		j.Note("%v: everything is on the first device", err)
		j.Try(make([]uint8, problem.Graph.NumOps()))
		return j.Outcome()
	case err != nil:
		return nil, err
	}
	j.Try(r.Device)
	if problem.Objective.Normal() != plan.Throughput {
		j.Note("cuts by the largest load, not by the %s objective", problem.Objective.Normal())
	}
	switch {
	case c.Linear:
	case r.Optimal && s.Part == nil:
		j.Note("optimal among contiguous splits: %d downsets", r.Downsets)
	case r.Downsets == 0:
		j.Note("more than %d downsets: the best cut of topological orders", c.Downsets)
	}
	return j.Outcome()
}
