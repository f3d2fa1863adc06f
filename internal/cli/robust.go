package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"placer/internal/words"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/placer/verdict"
	"placer/plan"
	"placer/sim"
	"placer/sim/robust"
)

// A search by a quantile over machines that deviate has three parts. It searches on the
// machine as it is (searchNominal). It searches by the quantile, from every plan that this
// came to (search.Search, told by remember). It has the last plans of each method run on
// other machines, and takes the best there (chooseFinal).

// robustSearch is what a search by a quantile has beside others.
type robustSearch struct {
	first int // evaluations on the machine as it is
	// end is when a budget in seconds is over, finals included; 0 without one.
	end float64
	// plans are those that the quantile of more machines may choose from at the end.
	plans []candidate
}

// candidate is a plan that a method came to.
type candidate struct {
	method string
	plan.Decision
}

// lastBests is how many of the bests that a method came to on the machine as it is are judged on
// machines that deviate, the last ones: they take nearly the same step there, and differ by
// what they have in reserve.
const lastBests = 8

// nominalTimes is how many evaluations on the machine as it is a robust search has for each
// of its own.
const nominalTimes = 4

// searchNominal searches on the machine as it is, where steps are judged by a quantile over
// machines that deviate, and lets the search start from every plan that this came to. It has
// half of a budget in time, and beside one in evaluations nominalTimes as many: each costs a
// fiftieth there. It returns what is left, and what the end of the search needs to know; nil
// for other searches. A run that is resumed knows its plans already, but for those that the
// end chooses among: under a budget in evaluations it begins anew.
func (c *console) searchNominal(ctx context.Context, s *searchRun, how search.Config, host search.Host) (search.Config, *robustSearch, error) {
	if s.config.Robust == "" {
		return how, nil, nil
	}
	r := &robustSearch{}
	now := host.Clock()
	if b := how.Budget.Seconds; b > 0 {
		r.end = b
		how.Budget.Seconds -= finalShare * (b - now)
	}
	if s.memory != nil && how.Budget.Seconds == 0 {
		clear(s.memory.Ended) // the same plan comes of the same beginning alone
	} else if s.memory != nil {
		if _, known := s.memory.Ended[methods.GivenName]; known {
			s.startFrom(s.given)
			return how, r, nil
		}
	}
	own := how
	own.Fewer = false
	own.Budget.Evaluations *= nominalTimes
	if b := how.Budget.Seconds; b > 0 {
		own.Budget.Seconds = now + (b-now)/2
	}
	found, near, err := c.searchAsIs(ctx, s, own, host)
	if errors.Is(err, search.ErrNoPlacement) || errors.Is(err, search.ErrNoTime) {
		return how, r, nil
	}
	if err != nil {
		return how, nil, err
	}
	// The best comes first: a short budget may judge no other.
	plans := append([]plan.Decision{found.Rows[found.Best].Decision}, s.given...)
	for k := range found.Rows {
		if k != found.Best {
			plans = append(plans, found.Rows[k].Decision)
		}
	}
	for _, m := range s.methods {
		plans = append(plans, near[m.Name]...)
		for _, d := range near[m.Name][max(0, len(near[m.Name])-finalBests):] {
			r.plans = append(r.plans, candidate{methods.GivenName, d})
		}
	}
	if ctx.Err() != nil {
		plans = plans[:1] // of which judgeStopped makes what is left
	}
	s.startFrom(plans)
	s.methods[0].Note = "for the machine as it is"
	r.first = found.Evaluations
	return how, r, nil
}

// judgeStopped judges by the quantile the best plan for the machine as it is, where the search was
// stopped before it had any other. The run remembers nothing of it: resumed, it begins again.
func (c *console) judgeStopped(ctx context.Context, s *searchRun, how search.Config, host search.Host) (*search.Result, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	how.Fewer = false
	host.Memory, host.Observe = nil, func(e search.Event) error {
		if e.What == search.Ended {
			stop()
		}
		return nil
	}
	return search.Search(ctx, s.task, s.methods[:1], how, host)
}

// searchAsIs searches on the machine as it is, and returns the last bests of each method
// beside what it found.
func (c *console) searchAsIs(ctx context.Context, s *searchRun, how search.Config, host search.Host) (found *search.Result, near map[string][]plan.Decision, err error) {
	o, err := s.config.options()
	if err != nil {
		return nil, nil, err
	}
	o.Robust = nil
	p, err := problem.New(s.loaded.Source, s.task.Machine, o)
	if err != nil {
		return nil, nil, err
	}
	show := c.newProgress(how.Budget)
	defer show.close()
	show.line("first on the machine as it is")
	near = map[string][]plan.Decision{}
	host.Observe = func(e search.Event) error {
		show.observe(e)
		if e.Device != nil && e.Score.Feasible() {
			near[e.Method] = append(near[e.Method], e.Decision.Clone())
			near[e.Method] = near[e.Method][max(0, len(near[e.Method])-lastBests):]
		}
		return nil
	}
	found, err = search.Search(ctx, p, s.methods, how, host)
	return found, near, err
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

// remember keeps a best that a method came to, the last few of each.
func (r *robustSearch) remember(e search.Event) {
	if r == nil || e.Device == nil || !e.Score.Feasible() {
		return
	}
	r.plans = append(r.plans, candidate{e.Method, e.Decision.Clone()})
	of := func(c candidate) bool { return c.method == e.Method }
	mine := 0
	for _, c := range r.plans {
		if of(c) {
			mine++
		}
	}
	if e.Method != methods.GivenName && mine > finalBests {
		k := slices.IndexFunc(r.plans, of)
		r.plans = slices.Delete(r.plans, k, k+1)
	}
}

// Plans of a robust search are chosen at the end on other machines than those they were made
// on, and than those that simulate --robust judges them on: the last finalBests of each
// method. finalShare is the most of a budget in seconds that this takes.
const (
	finalBests    = 4
	finalMachines = 1000
	finalSeed     = 2000
	finalShare    = 0.05
)

// chooseFinal has the plans of a robust search run on machines that it was not made on, and makes the
// one of the least quantile there the best.
func (c *console) chooseFinal(ctx context.Context, s *searchRun, r *robustSearch, found *search.Result, workers int) error {
	if r == nil || found.Interrupted {
		return nil
	}
	for k := range found.Rows {
		r.plans = append(r.plans, candidate{found.Rows[k].Method, found.Rows[k].Decision})
	}
	chosen := &found.Rows[found.Best]
	all := []candidate{{chosen.Method, chosen.Decision}}
	given := plan.Decision{Priority: s.task.Priority, Fusion: s.task.Fusion}
	for _, p := range r.plans {
		p.Decision = p.Or(given)
		if !slices.ContainsFunc(all, func(o candidate) bool { return same(o.Decision.Or(given), p.Decision) }) {
			all = append(all, p)
		}
	}
	o, err := s.config.options()
	if err != nil {
		return err
	}
	cost, err := s.loaded.Costs(s.task.Machine)
	if err != nil {
		return err
	}
	how, config := sim.Default(), *o.Robust
	how.Contention = s.task.Contention
	config.Machines, config.Seed = finalMachines, finalSeed
	config.Error = verdict.ErrorOf(s.loaded.Source, s.task.Machine).Share
	limit := ctx
	if r.end > 0 {
		var stop context.CancelFunc
		limit, stop = context.WithTimeout(ctx, time.Duration((r.end-s.before-c.clock())*float64(time.Second)))
		defer stop()
	}
	decisions := make([]plan.Decision, len(all))
	for k := range all {
		decisions[k] = all[k].Decision.Or(given)
	}
	best, n, err := robust.Finals(limit, robust.Model{Graph: s.task.Graph, Machine: s.task.Machine, Cost: cost, How: how}, config, decisions, workers)
	found.Interrupted = ctx.Err() != nil // so that a resumed run chooses again
	if err != nil || n < finalMachines/16 {
		return err
	}
	found.Prefer(s.task, all[best].method, decisions[best], fmt.Sprintf("the best of %s on %s", words.Count(len(all), "plan", "plans"), words.Count(n, "other machine", "other machines")))
	return nil
}

// same reports whether two decisions are equal.
func same(a, b plan.Decision) bool {
	return slices.Equal(a.Device, b.Device) && slices.Equal(a.Priority, b.Priority) && slices.Equal(a.Fusion, b.Fusion)
}
