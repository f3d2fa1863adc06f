package methods

import (
	"context"

	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// Teach returns the plan of the default search of p from scratch within a budget in
// evaluations, and the method that found it: a label that depends on no trained policy.
// It returns ctx's error where the search was stopped.
func Teach(ctx context.Context, p *problem.Problem, evaluations int, seed uint64) (plan.Decision, string, error) {
	of := Of(p)
	of.FromScratch = true
	c := search.Default()
	c.Budget, c.Seed, c.Workers = plan.Budget{Evaluations: evaluations}, seed, 1
	still := func() float64 { return 0 }
	found, err := search.Search(ctx, p, ByDefault(ForSearch(of, Default())), c, search.Host{Clock: still, CPU: still}, nil, nil)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return plan.Decision{}, "", err
	}
	best := &found.Rows[found.Best]
	return best.Decision, best.Method, nil
}
