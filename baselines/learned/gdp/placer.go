package gdp

import (
	"context"
	"fmt"

	"placer/internal/words"
	"placer/plan"
)

// PlacerOne is GDP-one.
type PlacerOne struct {
	Config Config
	// Observe, if not nil, is told of every round.
	Observe func(Round)
}

var _ plan.Placer = PlacerOne{}

// Name returns "GDP-one".
func (PlacerOne) Name() string { return "GDP-one" }

// Kind returns plan.Policy.
func (PlacerOne) Kind() plan.Kind { return plan.Policy }

// Place trains until the budget is spent and returns the best placement that was
// sampled.
func (o PlacerOne) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	r, err := newRun(ctx, o.Name(), o.Config, []*plan.Problem{p}, o.Observe)
	if err != nil {
		return nil, err
	}
	if err := r.train(); err != nil {
		return nil, err
	}
	return r.trials[0].Outcome()
}

// PlacerBatch is GDP-batch. The policy is trained on the problem and on the
// companions side by side until the problem's budget is spent. What is evaluated
// on companions is noted in the outcome and does not count against the budget.
type PlacerBatch struct {
	Config Config
	// Companions are problems of their own; their budgets are not read.
	Companions []*plan.Problem
	Observe    func(Round)
}

var _ plan.Placer = PlacerBatch{}

// Name returns "GDP-batch".
func (PlacerBatch) Name() string { return "GDP-batch" }

// Kind returns plan.Policy.
func (PlacerBatch) Kind() plan.Kind { return plan.Policy }

// Place is as plan.Placer says.
func (b PlacerBatch) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	all := []*plan.Problem{p}
	for _, c := range b.Companions {
		q := *c
		q.Budget, q.Clock, q.Report = p.Budget, p.Clock, nil
		all = append(all, &q)
	}
	r, err := newRun(ctx, b.Name(), b.Config, all, b.Observe)
	if err != nil {
		return nil, err
	}
	for !r.trials[0].spent {
		if err := r.batch(r.draw()); err != nil {
			return nil, err
		}
	}
	o, err := r.trials[0].Outcome()
	if err != nil {
		return nil, err
	}
	for _, t := range r.trials[1:] {
		o.Notes = append(o.Notes, fmt.Sprintf("trained on %s too, %s", t.Problem.Graph.Name(), words.Count(t.Evaluations(), "evaluation", "evaluations")))
	}
	return o, nil
}
