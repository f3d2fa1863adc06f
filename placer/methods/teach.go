package methods

import (
	"context"
	"slices"

	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// Teach searches p as a search does by default, from scratch: a label that depends on no
// trained policy. Its portfolio has the budget, on clock where it is in seconds; the rules
// before it come on top. Teach returns ctx's error where it was stopped.
func Teach(ctx context.Context, p *problem.Problem, b plan.Budget, clock func() float64, seed uint64) (*search.Row, error) {
	of := Of(p)
	of.FromScratch = true
	all := ByDefault(of, ForSearch(of, Default()))
	k := slices.IndexFunc(all, func(m search.Method) bool { return m.Name == Portfolio })
	portfolio := all[k].New
	all[k].New = func(s search.Start) (plan.Placer, error) {
		x, err := portfolio(s)
		return timed{x, b, clock}, err
	}
	c := search.Default()
	c.Budget, c.Seed, c.Workers = plan.Budget{Evaluations: 1}, seed, 1 // the portfolio's is its own
	still := func() float64 { return 0 }
	found, err := search.Search(ctx, p, all, c, search.Host{Clock: still, CPU: still})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	best := found.Rows[found.Best]
	best.Evaluations = found.Evaluations
	return &best, nil
}

// timed is a method with a budget and a clock of its own.
type timed struct {
	plan.Placer
	budget plan.Budget
	clock  func() float64
}

// Place is as plan.Placer says.
func (t timed) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	q := *p
	q.Budget, q.Clock = t.budget, t.clock
	return t.Placer.Place(ctx, &q)
}
