package corpus

import (
	"context"
	"fmt"

	"placer/baselines/rules"
	"placer/placer/problem"
	"placer/plan"
)

// Teacher searches p within a budget in evaluations, under a seed alone, and returns the
// best plan and the method that found it. One that was stopped returns ctx's error.
type Teacher func(ctx context.Context, p *problem.Problem, evaluations int, seed uint64) (d plan.Decision, method string, err error)

// A label of a number of processor seconds is the plan of a search of so many evaluations
// as take that long. How many these are, shorter searches of the same problem tell, from
// pilot evaluations on.
const (
	pilot = 200
	// growth is the most by which one search is longer than the one before: the first ones
	// tell little of what an evaluation costs.
	growth = 12
	// margin is what the last search is longer than it should have to be.
	margin = 1.1
)

// label labels problem p of recipe r, draw index.
func label(ctx context.Context, c Config, index int, r Recipe, p *problem.Problem, teach Teacher, cpu func() float64) (*Problem, error) {
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
	d, err := x.search(ctx, c, p, teach, cpu)
	if err != nil {
		return nil, x.at(err)
	}
	return x, x.label(p, d)
}

// search returns what the teacher finds within the budget of a label.
func (x *Problem) search(ctx context.Context, c Config, p *problem.Problem, teach Teacher, cpu func() float64) (d plan.Decision, err error) {
	if x.Evaluations = c.Evaluations; c.Evaluations > 0 {
		d, x.Method, err = teach(ctx, p, x.Evaluations, x.Seed)
		return d, err
	}
	x.Evaluations = pilot
	evaluations, seconds := 0.0, 0.0 // of the search before
	for {
		before := cpu()
		if d, x.Method, err = teach(ctx, p, x.Evaluations, x.Seed); err != nil {
			return d, err
		}
		x.CPUSeconds = cpu() - before
		if x.CPUSeconds >= c.Seconds {
			return d, nil
		}
		n := float64(x.Evaluations)
		next := growth * n
		if rate := (x.CPUSeconds - seconds) / (n - evaluations); rate > 0 {
			next = min(next, n+margin*(c.Seconds-x.CPUSeconds)/rate)
		}
		evaluations, seconds = n, x.CPUSeconds
		x.Evaluations = int(max(next, n*margin))
	}
}
