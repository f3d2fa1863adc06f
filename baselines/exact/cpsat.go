package exact

import (
	"context"
	"errors"
	"math"

	"placer/baselines/cpsat"
	"placer/baselines/judge"
	"placer/plan"
	"placer/sim"
)

// MaxTransfers bounds the models given to the solver: messages times pairs of
// devices.
const MaxTransfers = 50_000

// CPSAT looks for the best plan with the solver of OR-Tools.
type CPSAT struct {
	// Library is the path of libortools; empty looks where cpsat.Open says.
	Library string
	// Workers is the number of the solver's threads; 0 means 1, the only number for
	// which an outcome depends on the problem alone.
	Workers int
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

var errStepAlone = errors.New("the model for CP-SAT is of the step time alone")

// Solve is Place, with the proof.
func (c CPSAT) Solve(ctx context.Context, p *plan.Problem) (*plan.Outcome, *Proof, error) {
	l, err := cpsat.Open(c.Library)
	if err == nil && p.Objective.Normal() != plan.Step {
		err = errStepAlone
	}
	j := judge.New(ctx, p, c.Name())
	if errors.Is(err, cpsat.ErrUnavailable) || errors.Is(err, errStepAlone) {
		proof, failed := Exact{}.by(ctx, p, j)
		if failed != nil {
			return nil, nil, failed
		}
		j.Note("%v; own branch and bound instead", err)
		out, err := j.Outcome()
		return out, proof, err
	}
	if err != nil {
		return nil, nil, err
	}
	t := newTable(p)
	starts(ctx, p, t, j)
	proof := &Proof{Bound: simBound(p)}
	if size := len(t.messages) * t.d * t.d; size > MaxTransfers {
		proof.Bound = max(proof.Bound, root(t))
		j.Note("best found: %d possible transfers are too many for the solver, at most %d; %s", size, MaxTransfers, gap(j.Best(), proof.Bound))
	} else if ctx.Err() == nil {
		if err := c.run(ctx, l, t, j, proof); err != nil {
			return nil, nil, err
		}
	}
	out, err := j.Outcome()
	return out, proof, err
}

// run solves the model of t and evaluates its solution: with the order of its
// starts, with the problem's own priorities and, where the graph is small, with the
// best order that a short search finds for its placement. Where that leaves a gap,
// since the model is a relaxation, branch and bound goes on with small graphs from
// what the solver has found and shown.
func (c CPSAT) run(ctx context.Context, l *cpsat.Library, t *table, j *judge.Judge, proof *Proof) error {
	horizon := t.serial()
	before, err := j.Outcome()
	if err != nil {
		return err
	}
	if before.Score.Feasible() {
		horizon = before.Score.Seconds * (1 + 1e-9)
	}
	m := newModel(t, horizon)
	m.hint(before.Device)
	r, err := l.Solve(ctx, &m.Model, c.params(t.p))
	if err != nil {
		return err
	}
	if r.Status == cpsat.Infeasible {
		if before.Score.Feasible() {
			j.Note("best found: the solver finds no solution where there is one, which proves nothing")
			return nil
		}
		proof.Impossible, proof.Bound = true, math.Inf(1)
		j.Note("INFEASIBLE: what is resident fits no placement: proven by CP-SAT")
		return nil
	}
	if r.Values != nil {
		m.try(r, j)
	}
	if r.Bound > 0 {
		proof.Bound = max(proof.Bound, r.Bound*m.tick*(1-1e-9))
	}
	best := j.Best()
	if proof.Optimal = best.Feasible() && best.Seconds <= proof.Bound*(1+1e-6); proof.Optimal {
		j.Note("OPTIMAL over all placements and priorities, up to rounding: proven by CP-SAT")
		return nil
	}
	if t.n > MaxOps {
		j.Note("best found: CP-SAT says %v of its relaxation; %s", r.Status, gap(best, proof.Bound))
		return nil
	}
	Exact{}.prove(ctx, t.p, t, j, proof)
	j.Note("CP-SAT says %v of its relaxation", r.Status)
	return nil
}

// try evaluates a solution.
func (m *model) try(r *cpsat.Response, j *judge.Judge) {
	device, starts := make([]uint8, m.n), make([]int64, m.n)
	for i := range device {
		for d, v := range m.on[m.units.Of[i]] {
			if r.True(v) {
				device[i] = uint8(d)
			}
		}
		starts[i] = r.Value(m.starts[i])
	}
	j.TryPlan(device, sim.RankByKey(starts))
	if j.Done() {
		return
	}
	j.Try(device)
	if m.n > MaxOps || j.Done() {
		return
	}
	s := newSearch(m.table, j)
	s.limit = 10_000
	if best := j.Best(); best.Feasible() {
		s.best = best.Seconds
	}
	for i, d := range device {
		s.device[i] = int8(d)
	}
	s.dispatchAll()
}

func (c CPSAT) params(p *plan.Problem) cpsat.Params {
	q := cpsat.Params{Workers: max(1, c.Workers), Seed: int32(p.Seed % (1 << 31)), Seconds: p.Budget.Seconds}
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
