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

// nominal searches on the machine as it is within half of what how has, where steps are
// judged by a quantile over machines that deviate, and lets the search start from every
// plan that this came to: one evaluation there costs as many as there are machines here. It
// returns what is left, and the evaluations that it took. A run that is resumed knows its
// plans already.
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
	own.Budget.Evaluations /= 2
	if b := how.Budget.Seconds; b > 0 {
		own.Budget.Seconds = now + (b-now)/2
	}
	if own.Budget == (plan.Budget{}) {
		return how, 0, nil // of one evaluation there is no half
	}
	show := c.newProgress(own.Budget)
	show.line("first on the machine as it is, with half of the budget")
	found, err := search.Search(ctx, p, s.methods, own, host, func(e search.Event) error { show.observe(e); return nil }, nil)
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
	s.startFrom(plans)
	how.Budget.Evaluations -= own.Budget.Evaluations
	return how, found.Evaluations, nil
}

// startFrom makes plans the first of the methods.
func (s *searchRun) startFrom(plans []plan.Decision) {
	rest := slices.DeleteFunc(slices.Clone(s.methods), func(m search.Method) bool { return m.Name == methods.GivenName })
	s.methods = append([]search.Method{methods.Given(plans)}, rest...)
}
