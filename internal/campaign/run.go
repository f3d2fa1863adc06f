package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/graph"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Outcome is what one case came to.
type Outcome struct {
	Faults []string
	// Plans were checked, of methods by name; Infeasible says that the problem itself
	// was refused.
	Plans      map[string]int
	Infeasible bool
	// Tried are the other forms in which the problem was searched, by name.
	Tried map[string]int
}

// Run searches c twice, with one worker and with two, and holds what comes out to
// what must be true of it.
func Run(ctx context.Context, c *Case) (*Outcome, error) {
	o := &Outcome{Plans: map[string]int{}, Tried: map[string]int{}}
	p, err := problem.New(problem.Source{Graph: c.Graph}, c.Machine, c.Options)
	if errors.Is(err, problem.ErrInfeasible) {
		o.Infeasible = true
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := c.search(ctx, p, 1)
	if err != nil {
		return nil, err
	}
	again, err := c.search(ctx, p, 2)
	if err != nil {
		return nil, err
	}
	fault := func(format string, a ...any) { o.Faults = append(o.Faults, fmt.Sprintf(format, a...)) }
	best := &found.Rows[found.Best]
	for k := range found.Rows {
		row := &found.Rows[k]
		o.Plans[row.Method]++
		for _, f := range c.judge(p, row) {
			fault("%s: %s", row.Method, f)
		}
		if longer(best.Score, row.Score) {
			fault("%s came to %v, better than the best, %s with %v", row.Method, row.Score, best.Method, best.Score)
		}
		twin := again.Row(row.Method)
		if twin == nil || !slices.Equal(twin.Device, row.Device) || !slices.Equal(twin.Priority, row.Priority) || !slices.Equal(twin.Fusion, row.Fusion) {
			fault("%s: another plan with two workers", row.Method)
		}
	}
	more, err := c.related(ctx, p, found, o.Tried)
	o.Faults = append(o.Faults, more...)
	return o, err
}

func (c *Case) search(ctx context.Context, p *problem.Problem, workers int) (*search.Result, error) {
	var chosen []search.Method
	for _, m := range methods.ForSearch(c.problem(), methods.Options{Level: methods.Default().Level, Workers: 2 * workers}) {
		if slices.Contains(c.Methods, m.Name) {
			chosen = append(chosen, m)
		}
	}
	return c.searchBy(ctx, p, chosen, search.Config{Budget: plan.Budget{Evaluations: c.Evaluations}, Workers: workers})
}

// searchBy searches p by the methods chosen under c's seed.
func (c *Case) searchBy(ctx context.Context, p *problem.Problem, chosen []search.Method, how search.Config) (*search.Result, error) {
	how.Seed, how.Human = c.Seed, search.Default().Human
	still := func() float64 { return 0 }
	return search.Search(ctx, p, chosen, how, search.Host{Clock: still, CPU: still})
}

// judge holds one row's plan to the checker, and its score to what the checker has
// seen and to the proven bound.
func (c *Case) judge(p *problem.Problem, row *search.Row) (faults []string) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	if s := p.Evaluator.Clone().Evaluate(row.Decision); s != row.Score {
		fault("its score is %v, computed anew %v", row.Score, s)
	}
	if row.Score.Feasible() && row.Score.Value < p.Bound*(1-slack) {
		fault("%v is below the proven bound, %g", row.Score, p.Bound)
	}
	s, _, err := problem.Simulator(problem.Source{Graph: c.Graph}, c.Machine, c.Options)
	if err != nil {
		return append(faults, err.Error())
	}
	r, err := s.Run(&plan.Plan{Decision: row.Decision}, sim.Options{Trace: true})
	if r == nil {
		return append(faults, err.Error())
	}
	seconds := make([][]float64, c.Machine.NumDevices())
	for d := range seconds {
		seconds[d] = s.OpSeconds(d)
	}
	faults = append(faults, Faults(c.Graph, c.Machine, c.Options.Contention, row.Decision, func(i graph.OpID, d int) units.Seconds { return units.Seconds(seconds[d][i]) }, r)...)
	over := units.Bytes(0)
	for d, peak := range r.PeakBytes {
		over += max(0, peak-c.Machine.Devices[d].Memory)
	}
	if objective := c.Options.Objective.Normal(); objective != plan.Throughput && over != row.Score.Overflow {
		fault("its score says %d bytes too many, counted %d", row.Score.Overflow, over)
	}
	if c.Options.Objective.Normal() == plan.Step && !same(r.Makespan, units.Seconds(row.Score.Value)) {
		fault("its score says %g s, its run takes %v", row.Score.Value, r.Makespan)
	}
	return faults
}
