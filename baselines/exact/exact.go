package exact

import (
	"context"
	"math"

	"placer/baselines/heft"
	"placer/baselines/judge"
	"placer/plan"
	"placer/sim"
)

// MaxOps is the size of the largest graph that is searched.
const MaxOps = 64

// Exact is branch and bound over all plans of a small graph.
type Exact struct {
	// Nodes bounds the search; 0 means fifty for each evaluation of the budget and
	// at most 200,000, or no bound where the budget has no evaluations.
	Nodes int
}

var _ plan.Placer = Exact{}

// Name returns "exact".
func (Exact) Name() string { return "exact" }

// Kind returns plan.Search.
func (Exact) Kind() plan.Kind { return plan.Search }

// Proof is what a search has shown.
type Proof struct {
	// Optimal says that no plan is better than the outcome, up to a relative 1e-9;
	// where the objective is memory, none under the problem's scheduler.
	Optimal bool
	// Impossible says that no plan fits in memory.
	Impossible bool
	// Bound is a lower bound of every plan that fits: seconds, or bytes where the
	// objective is memory.
	Bound float64
	Nodes int
}

// Place searches until it has a proof or the budget ends. The outcome's first note
// says which.
func (e Exact) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	out, _, err := e.Solve(ctx, p)
	return out, err
}

// Solve is Place, with the proof.
func (e Exact) Solve(ctx context.Context, p *plan.Problem) (*plan.Outcome, *Proof, error) {
	j := judge.New(ctx, p, e.Name())
	proof, err := e.by(ctx, p, j)
	if err != nil {
		return nil, nil, err
	}
	out, err := j.Outcome()
	return out, proof, err
}

// by searches by the problem's objective.
func (e Exact) by(ctx context.Context, p *plan.Problem, j *judge.Judge) (*Proof, error) {
	switch p.Objective.Normal() {
	case plan.Throughput:
		return e.loads(ctx, p, j)
	case plan.Memory:
		return e.peaks(p, j), nil
	}
	return e.search(ctx, p, j), nil
}

func (e Exact) search(ctx context.Context, p *plan.Problem, j *judge.Judge) *Proof {
	t := newTable(p)
	starts(ctx, p, t, j)
	proof := &Proof{Bound: simBound(p)}
	if t.n > MaxOps {
		proof.Bound = max(proof.Bound, root(t))
		j.Note("best found: %d ops are too many to search, at most %d; %s", t.n, MaxOps, gap(j.Best(), proof.Bound))
		return proof
	}
	e.prove(ctx, p, t, j, proof)
	return proof
}

// prove searches from the best that j has seen and the bound that proof has.
func (e Exact) prove(ctx context.Context, p *plan.Problem, t *table, j *judge.Judge, proof *Proof) {
	s := newSearch(t, j)
	s.limit = e.limit(p)
	if j.Best().Feasible() {
		s.best = j.Best().Seconds
	}
	if ctx.Err() == nil && !s.cut(proof.Bound) {
		s.place(0)
	} else {
		s.stopped, s.open = ctx.Err() != nil, proof.Bound
	}
	s.conclude(proof)
}

func (e Exact) limit(p *plan.Problem) int {
	if e.Nodes > 0 || p.Budget.Evaluations <= 0 {
		return e.Nodes
	}
	return min(200_000, 50*p.Budget.Evaluations)
}

// conclude says what the search has shown.
func (s *search) conclude(proof *Proof) {
	proof.Nodes = s.nodes
	best := s.j.Best()
	switch {
	case s.differs:
		s.j.Note("best found: the evaluator follows other rules than the search, which proves nothing")
	case s.stopped:
		proof.Bound = max(proof.Bound, min(s.open, s.best)*(1-tolerance))
		proof.Optimal = best.Feasible() && best.Seconds*(1-tolerance) <= proof.Bound
		if proof.Optimal {
			s.j.Note("OPTIMAL over all placements and priorities")
			return
		}
		s.j.Note("best found: stopped after %d nodes; %s", s.nodes, gap(best, proof.Bound))
	case best.Feasible():
		proof.Optimal, proof.Bound = true, best.Seconds*(1-tolerance)
		s.j.Note("OPTIMAL over all placements and priorities: proven with %d nodes", s.nodes)
	default:
		proof.Impossible, proof.Bound = true, math.Inf(1)
		s.j.Note("INFEASIBLE: no placement fits under any priority: proven with %d nodes", s.nodes)
	}
}

// starts evaluates the plans to begin with: everything on one device, and HEFT's.
func starts(ctx context.Context, p *plan.Problem, t *table, j *judge.Judge) {
	device := make([]uint8, t.n)
	for d := range t.d {
		if t.classes[d] != d || d > 0 && j.Done() {
			continue
		}
		for i := range device {
			device[i] = uint8(d)
		}
		j.Try(device)
	}
	if j.Done() {
		return
	}
	q := *p
	q.Report = nil
	q.Evaluator = &unheard{p.Evaluator}
	if out, err := (heft.HEFT{}).Place(ctx, &q); err == nil {
		j.Try(out.Device)
	}
}

// unheard answers without evaluating: what its user finds is evaluated later.
type unheard struct{ plan.Evaluator }

func (*unheard) Evaluate([]uint8, []int32) plan.Score { return plan.Score{} }

// simBound returns the simulator's own bound, if the evaluator has one.
func simBound(p *plan.Problem) float64 {
	if s, ok := p.Evaluator.(interface{ LowerBound() *sim.Bound }); ok {
		if b := s.LowerBound(); !b.Impossible {
			return float64(b.Seconds)
		}
	}
	return 0
}

// root returns the bound of t with nothing placed.
func root(t *table) float64 {
	device := make([]int8, t.n)
	for i := range device {
		device[i] = none
	}
	return newBounder(t).placement(device) * (1 - tolerance)
}
