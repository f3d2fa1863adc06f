package verdict

import (
	"context"
	"errors"
	"fmt"

	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
)

// count is the search of one answer: of a count of devices of a machine.
type count struct {
	*sweep
	p *problem.Problem
	a *Answer
}

// searchShare is the part of a sweep's time in which it searches; the rest is for what
// the methods need to stop, and for the exchange of plans at the end.
const searchShare = 0.92

// impossibleShare is the part of a count's time that goes to one where nothing can fit:
// what it lacks is known nearly at once.
const impossibleShare = 0.2

// repairShare is the part of a count's share that a repair has where the best plan found
// does not fit.
const repairShare = 0.5

// answer searches the k-th count, knowing the answers before.
func (x *sweep) answer(ctx context.Context, k int, at place) (*Answer, error) {
	began := x.host.Clock()
	a := &Answer{Machine: at.machine, Devices: at.devices, On: x.machines[at.machine].Taken(at.devices)}
	p, impossible, err := assemble(x.source, a)
	if err != nil {
		return nil, err
	}
	x.problems[at] = p
	a.AtPeak = atPeak(x.source.Graph, a.On)
	a.AtLeast = leastMissing(x.source, a.On, sim.PeakBound(x.source.Graph, 1))
	if !impossible {
		a.Bound = p.Bound
	}
	for _, s := range x.seeds(at) {
		a.consider(p, s.Decision, s.Method)
	}
	c := &count{x, p, a}
	if err := c.rules(ctx); err != nil {
		return nil, err
	}
	x.ahead = max(x.ahead, x.host.Clock()-began)
	if n := x.c.Budget.Evaluations; n > 0 {
		return a, c.rounds(ctx, n)
	}
	share := 1.0
	if impossible {
		share = impossibleShare
	}
	if err := c.timed(ctx, share*x.left(k), c.searches); err != nil || a.Score.Feasible() {
		return a, err
	}
	return a, c.timed(ctx, repairShare*share*x.left(k), c.repairs)
}

// left returns the seconds of the k-th count: an equal share of what is left.
func (x *sweep) left(k int) float64 {
	return (searchShare*x.c.Budget.Seconds - x.host.Clock()) / float64(len(x.todo)-k)
}

// rules considers the placements of two rules that take a moment, whatever time there is:
// layers on consecutive devices, and ops that fill one device after the other.
func (x *count) rules(ctx context.Context) error {
	if x.a.Devices == 1 {
		return nil
	}
	for _, name := range []string{"human", "m-topo"} {
		m, err := methods.Find(name)
		if err != nil {
			return err
		}
		placer, err := m.New(methods.Default())
		if err != nil {
			return err
		}
		if out, err := (dressed{placer, x.a.Decision}).Place(ctx, &x.p.Problem); err == nil {
			x.a.consider(x.p, out.Decision.Or(plan.Decision{Priority: x.p.Priority}), name)
		}
	}
	return nil
}

// What a search takes behind its methods is so many evaluations, before one has shown
// it; and a search has this part of its time at least.
const (
	judged     = 100
	leastShare = 0.4
)

// timed searches by methods for so many seconds from now on, of which what a search takes
// behind its methods is left out: judging their rows, tidying the best.
func (x *count) timed(ctx context.Context, seconds float64, methods func() ([]search.Method, error)) error {
	now, host := x.host.Clock(), x.host.Host
	if x.behind == 0 {
		x.p.Evaluator.Clone().Evaluate(plan.Decision{Device: make([]uint8, x.p.Graph.NumOps()), Priority: x.p.Priority})
		x.behind = judged * (x.host.Clock() - now)
		now = x.host.Clock()
	}
	budget := max(seconds-x.behind, leastShare*seconds)
	host.Clock = func() float64 { return x.host.Clock() - now }
	c := x.config(plan.Budget{Seconds: budget}, x.c.Seed)
	ms, err := methods()
	if err == nil {
		err = x.search(ctx, c, host, ms)
	}
	x.behind = max(x.behind, x.host.Clock()-now-budget)
	return err
}

// round is the least budget of a round, in evaluations: the first two have it, and each
// later one as much as all before it.
const round = 256

// rounds searches in rounds until n evaluations are spent. Behind the first all but
// annealing would give the same again, or start from nothing.
func (x *count) rounds(ctx context.Context, n int) error {
	methods := x.searches
	for k, spent := 0, 0; spent < n && ctx.Err() == nil; k++ {
		b := plan.Budget{Evaluations: max(round, spent)}
		ms, err := methods()
		if err != nil {
			return err
		}
		if err := x.search(ctx, x.config(b, plan.StreamSeed(x.c.Seed, fmt.Sprint("round ", k))), x.host.Host, ms); err != nil {
			return err
		}
		if !x.a.Score.Feasible() {
			ms, err := x.repairs()
			if err != nil {
				return err
			}
			if err := x.search(ctx, x.config(b, plan.StreamSeed(x.c.Seed, fmt.Sprint("repair ", k))), x.host.Host, ms); err != nil {
				return err
			}
		}
		methods = x.annealing
		spent += b.Evaluations
	}
	return nil
}

// config returns the configuration of a search of the count.
func (x *count) config(b plan.Budget, seed uint64) search.Config {
	c := search.Default()
	c.Budget, c.Seed, c.Workers = b, seed, x.c.Workers
	return c
}

// search searches by ms, and improves the answer.
func (x *count) search(ctx context.Context, c search.Config, h search.Host, ms []search.Method) error {
	if c.Budget.Evaluations > 0 || c.Budget.Seconds > 0 {
		found, err := search.Search(ctx, x.p, ms, c, h)
		if err != nil && !errors.Is(err, search.ErrNoPlacement) && !errors.Is(err, search.ErrNoTime) {
			return err
		}
		if err == nil {
			x.a.Evaluations += found.Evaluations
			for i := range found.Rows {
				x.a.take(&found.Rows[i])
			}
		}
	}
	if x.a.Device == nil { // no time for anything
		x.a.consider(x.p, plan.Decision{Device: make([]uint8, x.p.Graph.NumOps()), Priority: x.p.Priority}, "single")
	}
	return nil
}
