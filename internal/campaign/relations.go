package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
)

// tie is by how much the best of a search may be longer than another row of it: plans
// that close are told apart by other things (package search).
const tie = 2e-6

// longer reports whether a is worse than b by more than a tie.
func longer(a, b plan.Score) bool {
	return a.Overflow > b.Overflow || a.Overflow == b.Overflow && a.Value > b.Value*(1+tie)
}

// queues reports whether transfers to several devices can wait for one another: which of
// those that an op sends goes first is then by the number of the device (adr/0002: ties are
// part of the definition).
func (c *Case) queues() bool {
	if c.Options.Contention != sim.FIFO.String() {
		return false
	}
	used := make([]int, len(c.Machine.Links))
	for _, route := range c.Machine.Routes {
		for _, l := range route {
			used[l]++
		}
	}
	return slices.ContainsFunc(used, func(n int) bool { return n > 1 })
}

// relabelled holds each plan's score to that of the same plan on the same machine with its
// devices in reverse order. It must be the same where transfers do not queue.
func (c *Case) relabelled(found *search.Result, tried map[string]int) (faults []string) {
	queues := c.queues()
	last := c.Machine.NumDevices() - 1
	back := make([]int, last+1)
	for d := range back {
		back[d] = last - d
	}
	p, err := problem.New(problem.Source{Graph: c.Graph}, c.Machine.Keep(back), c.Options)
	if err != nil {
		return []string{fmt.Sprintf("with devices in reverse order: %v", err)}
	}
	for k := range found.Rows {
		row := &found.Rows[k]
		d := row.Decision.Clone()
		for i := range d.Device {
			d.Device[i] = uint8(last) - d.Device[i]
		}
		s := p.Evaluator.Evaluate(d)
		differs := longer(s, row.Score) || longer(row.Score, s)
		switch {
		case !queues:
			tried["relabelled"]++
		case differs:
			tried["relabelled with queues: other"]++
		default:
			tried["relabelled with queues: equal"]++
		}
		if differs && !queues {
			faults = append(faults, fmt.Sprintf("%s: %v, with devices in reverse order %v", row.Method, row.Score, s))
		}
	}
	return faults
}

// moreBudget searches with the rules and the portfolio, once with c's budget and once
// with twice as much, which must not end behind.
func (c *Case) moreBudget(ctx context.Context, p *problem.Problem) (faults []string, err error) {
	chosen := methods.ByDefault(c.problem(), methods.ForSearch(c.problem(), methods.Options{Level: methods.Default().Level, Workers: 1}))
	var before plan.Score
	for k, n := range []int{c.Evaluations, 2 * c.Evaluations} {
		r, err := c.searchBy(ctx, p, chosen, search.Config{Budget: plan.Budget{Evaluations: n}, Workers: 1})
		if err != nil {
			return nil, err
		}
		best := r.Rows[r.Best].Score
		if k > 0 && longer(best, before) {
			faults = append(faults, fmt.Sprintf("%v after %d evaluations, %v after half of them", best, n, before))
		}
		before = best
	}
	return faults, nil
}

// moreDevices searches on one device less and on all: with all it must not end behind.
// It is for machines of a few GPUs, whose searches on every smaller number cost little.
func (c *Case) moreDevices(ctx context.Context, p *problem.Problem) (faults []string, err error) {
	some := slices.DeleteFunc(methods.ForSearch(c.problem(), methods.Options{Level: methods.Default().Level, Workers: 1}), func(m search.Method) bool {
		return m.Kind != plan.Baseline && m.Name != "random-best" && m.Name != "local" && m.Name != "polish"
	})
	how := search.Config{Budget: plan.Budget{Evaluations: c.Evaluations}, Workers: 1, Fewer: true}
	less, err := c.Machine.Take(c.Machine.NumDevices()-1, false)
	if err != nil {
		return nil, err
	}
	q, err := p.On(less)
	if errors.Is(err, problem.ErrInfeasible) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	few, err := c.searchBy(ctx, q, some, how)
	if err != nil {
		return nil, err
	}
	all, err := c.searchBy(ctx, p, some, how)
	if err != nil {
		return nil, err
	}
	if a, b := all.Rows[all.Best].Score, few.Rows[few.Best].Score; longer(a, b) {
		faults = append(faults, fmt.Sprintf("%v on %d devices, %v on one less", a, c.Machine.NumDevices(), b))
	}
	return faults, nil
}

// manyDevices is the number above which moreDevices takes too long.
const manyDevices = 5

// related counts what was tried of a case in other forms, and returns what is wrong.
func (c *Case) related(ctx context.Context, p *problem.Problem, found *search.Result, tried map[string]int) (faults []string, err error) {
	faults = c.relabelled(found, tried)
	gpus := !slices.ContainsFunc(c.Machine.Devices, func(d hw.Device) bool { return d.Kind != hw.GPU })
	var more []string
	switch n := c.Machine.NumDevices(); {
	case c.Seed%4 == 1:
		tried["more budget"]++
		more, err = c.moreBudget(ctx, p)
	case c.Seed%4 == 3 && gpus && n > 1 && n <= manyDevices:
		tried["more devices"]++
		more, err = c.moreDevices(ctx, p)
	}
	return append(faults, more...), err
}
