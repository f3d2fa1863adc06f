package cli

import (
	"context"
	"errors"
	"slices"

	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// nominal searches on the machine as it is, where steps are judged by a quantile over
// machines that deviate, and lets the search start from every plan that this came to. It has
// half of a budget in time, and beside one in evaluations nominalTimes as many: each costs a
// fiftieth there. It returns what is left, and the evaluations that it took. A run that is
// resumed knows its plans already.
func (c *console) nominal(ctx context.Context, s *searchRun, how search.Config, host search.Host) (search.Config, int, error) {
	if s.config.Robust == "" {
		return how, 0, nil
	}
	if s.memory != nil {
		if _, known := s.memory.Ended[methods.GivenName]; known {
			s.startFrom(s.given)
			return how, 0, nil
		}
	}
	o, err := s.config.options()
	if err != nil {
		return how, 0, err
	}
	o.Robust = nil
	p, err := problem.New(s.loaded.Source, s.task.Machine, o)
	if err != nil {
		return how, 0, err
	}
	own, now := how, host.Clock()
	own.Fewer = false
	own.Budget.Evaluations *= nominalTimes
	if b := how.Budget.Seconds; b > 0 {
		own.Budget.Seconds = now + (b-now)/2
	}
	show := c.newProgress(own.Budget)
	show.line("first on the machine as it is")
	near := map[string][]plan.Decision{}
	found, err := search.Search(ctx, p, s.methods, own, host, func(e search.Event) error {
		show.observe(e)
		if e.Device != nil && e.Score.Feasible() {
			near[e.Method] = append(near[e.Method], e.Decision.Clone())
			near[e.Method] = near[e.Method][max(0, len(near[e.Method])-lastBests):]
		}
		return nil
	}, nil)
	show.close()
	if err != nil {
		if errors.Is(err, search.ErrNoPlacement) || errors.Is(err, search.ErrNoTime) {
			return how, 0, nil
		}
		return how, 0, err
	}
	plans := slices.Clone(s.given)
	for k := range found.Rows {
		plans = append(plans, found.Rows[k].Decision)
	}
	for _, m := range s.methods {
		plans = append(plans, near[m.Name]...)
	}
	s.startFrom(plans)
	s.methods[0].Note = "for the machine as it is"
	return how, found.Evaluations, nil
}

// startFrom makes plans the first of the methods, and has the others that search start from the
// best of them: they began from nothing on the machine as it is.
func (s *searchRun) startFrom(plans []plan.Decision) {
	all := []search.Method{methods.Given(plans)}
	for _, m := range s.methods {
		if m.Name == methods.GivenName {
			continue
		}
		if m.Stage == search.StageSearch {
			m.Stage = search.StageShare
		}
		all = append(all, m)
	}
	s.methods = all
}

// lastBests is how many of the bests that a method came to on the machine as it is are judged on
// machines that deviate, the last ones: they take nearly the same step there, and differ by
// what they have in reserve.
const lastBests = 8

// nominalTimes is how many evaluations on the machine as it is a robust search has for each
// of its own.
const nominalTimes = 4
