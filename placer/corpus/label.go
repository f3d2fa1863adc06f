package corpus

import (
	"context"
	"fmt"

	"placer/baselines/rules"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// Teacher searches p within a budget, on clock where it is in seconds, and returns the
// best plan with the number of evaluations of the whole search. Within a budget in
// evaluations the plan depends on the seed alone. One that was stopped returns ctx's
// error.
type Teacher func(ctx context.Context, p *problem.Problem, b plan.Budget, clock func() float64, seed uint64) (*search.Row, error)

// label labels problem p of recipe r, draw index.
func (m *making) label(ctx context.Context, index int, r Recipe, p *problem.Problem) (*Problem, error) {
	c, cpu := m.read.Config, m.meter.seconds
	x := &Problem{Index: index, Recipe: r, Seed: plan.StreamSeed(c.Seed, fmt.Sprintf("label %d", index))}
	for _, rule := range []struct {
		of plan.Placer
		to *Score
	}{{rules.Expert(), &x.Expert}, {rules.Single(), &x.OneDevice}} {
		o, err := rule.of.Place(ctx, &p.Problem)
		if err != nil {
			return nil, x.at(err)
		}
		*rule.to = scoreOf(o.Score)
	}
	start := cpu()
	best, err := m.host.Teach(ctx, p, plan.Budget{Seconds: c.Seconds, Evaluations: c.Evaluations}, cpu, x.Seed)
	if err != nil {
		return nil, x.at(err)
	}
	x.Method, x.Evaluations = best.Method, best.Evaluations
	if c.Seconds > 0 {
		x.CPUSeconds = cpu() - start
	}
	return x, x.label(p, best.Decision)
}
