package exact

import (
	"context"
	"errors"
	"math"

	"placer/baselines/budget"
	"placer/baselines/exact/cpsat"
	"placer/plan"
	"placer/sim"
)

// maxTransfers bounds the models given to the solver: messages times pairs of
// devices.
const maxTransfers = 50_000

// CPSAT looks for the best plan with the solver of OR-Tools.
type CPSAT struct {
	// library is the path of libortools; empty looks where cpsat.Open says.
	library string
	// workers is the number of the solver's threads; 0 means 1, the only number for
	// which an outcome depends on the problem alone.
	workers int
}

var _ plan.Placer = CPSAT{}

// Name returns "cp-sat".
func (CPSAT) Name() string { return "cp-sat" }

// Kind returns plan.Search.
func (CPSAT) Kind() plan.Kind { return plan.Search }

// Place runs the solver and evaluates what it finds. Under a budget in evaluations
// alone the solver gets a millisecond of its deterministic time for each, at most
// five seconds. Without the solver it runs Exact, and says so in a note.
func (c CPSAT) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	out, _, err := c.Solve(ctx, p)
	return out, err
}

var (
	errStepAlone  = errors.New("the model for CP-SAT is of the step time alone")
	errLinksAlone = errors.New("the model for CP-SAT knows no copies that occupy the sender")
)

// Solve is Place, with the proof.
func (c CPSAT) Solve(ctx context.Context, p *plan.Problem) (*plan.Outcome, *Proof, error) {
	l, err := cpsat.Open(c.library)
	if err == nil && p.Objective.Normal() != plan.Step {
		err = errStepAlone
	}
	if err == nil && p.Machine.OccupiesSender() {
		err = errLinksAlone
	}
	track := budget.New(ctx, p, c.Name())
	if errors.Is(err, cpsat.ErrUnavailable) || errors.Is(err, errStepAlone) || errors.Is(err, errLinksAlone) {
		proof, failed := Exact{}.by(ctx, p, track)
		if failed != nil {
			return nil, nil, failed
		}
		track.Note("%v; own branch and bound instead", err)
		out, err := track.Outcome()
		return out, proof, err
	}
	if err != nil {
		return nil, nil, err
	}
	t := newTable(p)
	starts(ctx, p, t, track)
	proof := &Proof{Bound: simBound(ctx, p)}
	if size := len(t.messages) * t.d * t.d; size > maxTransfers {
		proof.Bound = max(proof.Bound, root(t))
		track.Note("best found: %d possible transfers are too many for the solver, at most %d; %s", size, maxTransfers, gap(track.Best(), proof.Bound))
	} else if ctx.Err() == nil {
		if err := c.run(ctx, l, t, track, proof); err != nil {
			return nil, nil, err
		}
	}
	out, err := track.Outcome()
	return out, proof, err
}

// run solves the model of t and evaluates its solution: with the order of its
// starts, with the problem's own priorities and, where the graph is small, with the
// best order that a short search finds for its placement. Where that leaves a gap,
// since the model is a relaxation, branch and bound goes on with small graphs from
// what the solver has found and shown.
func (c CPSAT) run(ctx context.Context, l *cpsat.Library, t *table, track *budget.Tracker, proof *Proof) error {
	horizon := t.serial()
	before, err := track.Outcome()
	if err != nil {
		return err
	}
	if before.Score.Feasible() {
		horizon = before.Score.Value * (1 + 1e-9)
	}
	m := newModel(t, horizon)
	m.hint(before.Device)
	r, err := l.Solve(ctx, &m.Model, c.params(t.p))
	if err != nil {
		return err
	}
	if r.Status == cpsat.Infeasible {
		if before.Score.Feasible() {
			track.Note("best found: the solver finds no solution where there is one, which proves nothing")
			return nil
		}
		proof.Impossible, proof.Bound = true, math.Inf(1)
		track.Note("INFEASIBLE: what is resident fits no placement: proven by CP-SAT")
		return nil
	}
	if r.Values != nil {
		m.try(r, track)
	}
	if r.Bound > 0 {
		proof.Bound = max(proof.Bound, r.Bound*m.tick*(1-1e-9))
	}
	best := track.Best()
	if proof.Optimal = best.Feasible() && best.Value <= proof.Bound*(1+1e-6); proof.Optimal {
		track.Note("OPTIMAL over all placements and priorities, up to rounding: proven by CP-SAT")
		return nil
	}
	if t.n > maxOps {
		track.Note("best found: CP-SAT says %v of its relaxation; %s", r.Status, gap(best, proof.Bound))
		return nil
	}
	Exact{}.prove(ctx, t.p, t, track, proof)
	track.Note("CP-SAT says %v of its relaxation", r.Status)
	return nil
}

// try evaluates a solution.
func (m *model) try(r *cpsat.Response, track *budget.Tracker) {
	device, starts := make([]uint8, m.n), make([]int64, m.n)
	for i := range device {
		for d, v := range m.on[m.units.Of[i]] {
			if r.True(v) {
				device[i] = uint8(d)
			}
		}
		starts[i] = r.Value(m.starts[i])
	}
	track.TryPlan(device, sim.RankByKey(starts))
	if track.Done() {
		return
	}
	track.Try(device)
	if m.n > maxOps || track.Done() {
		return
	}
	s := newSearch(m.table, track)
	s.limit = 10_000
	if best := track.Best(); best.Feasible() {
		s.best = best.Value
	}
	for i, d := range device {
		s.device[i] = int8(d)
	}
	s.dispatchAll()
}

func (c CPSAT) params(p *plan.Problem) cpsat.Params {
	q := cpsat.Params{Workers: max(1, c.workers), Seed: int32(p.Seed % (1 << 31)), Seconds: p.Budget.Seconds}
	if q.Seconds == 0 && p.Budget.Evaluations > 0 {
		q.Work = min(5, 1e-3*float64(p.Budget.Evaluations))
	}
	return q
}

// serial returns a time within which every placement can be run: one op and one
// transfer after the other, each as slow as can be.
func (t *table) serial() (sum float64) {
	for i := range t.n {
		slowest := 0.0
		for _, s := range t.seconds {
			slowest = max(slowest, s[i])
		}
		sum += slowest
	}
	for k := range t.messages {
		for from := range t.d {
			for to := range t.d {
				if from != to {
					sum += t.routes[from*t.d+to].seconds(t.messages[k].bytes)
				}
			}
		}
	}
	return sum
}
