package contiguous

import (
	"context"
	"errors"

	"placer/baselines/budget"
	"placer/internal/words"
	"placer/plan"
	"placer/sim/throughput"
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
	track := budget.New(ctx, problem, p.Name())
	s := throughput.FromProblem(problem)
	r, err := Solve(ctx, s, c)
	switch {
	case errors.Is(err, ErrNothingFits):
		track.Note("%v: everything is on the first device", err)
		track.Try(make([]uint8, problem.Graph.NumOps()))
		return track.Outcome()
	case err != nil:
		return nil, err
	}
	track.Try(r.Device)
	if problem.Objective.Normal() != plan.Throughput {
		track.Note("cuts by the largest load, not by the %s objective", problem.Objective.Normal())
	}
	switch {
	case r.Allowance > 0:
		track.Note("the best cut of topological orders that holds room for %.3g%% of the outputs", 100*r.Allowance)
	case c.Linear:
	case r.Optimal && s.Part == nil:
		track.Note("optimal among contiguous splits: %s", words.Count(r.Downsets, "downset", "downsets"))
	case r.Downsets == 0:
		track.Note("more than %s: the best cut of topological orders", words.Count(c.Downsets, "downset", "downsets"))
	}
	return track.Outcome()
}
