package exact

import (
	"context"
	"math"

	"placer/baselines/budget"
	"placer/baselines/listsched"
	"placer/internal/words"
	"placer/plan"
	"placer/sim"
)

// maxOps is the size of the largest graph that is searched.
const maxOps = 64

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
	track := budget.New(ctx, p, e.Name())
	proof, err := e.by(ctx, p, track)
	if err != nil {
		return nil, nil, err
	}
	out, err := track.Outcome()
	return out, proof, err
}

// by searches by the problem's objective.
func (e Exact) by(ctx context.Context, p *plan.Problem, track *budget.Tracker) (*Proof, error) {
	switch p.Objective.Normal() {
	case plan.Throughput:
		return e.loads(ctx, p, track)
	case plan.Memory:
		return e.peaks(p, track), nil
	}
	return e.search(ctx, p, track), nil
}

func (e Exact) search(ctx context.Context, p *plan.Problem, track *budget.Tracker) *Proof {
	t := newTable(p)
	starts(ctx, p, t, track)
	proof := &Proof{Bound: simBound(ctx, p)}
	if t.n > maxOps {
		if !t.sending {
			proof.Bound = max(proof.Bound, root(t))
		}
		track.Note("best found: %d ops are too many to search, at most %d; %s", t.n, maxOps, gap(track.Best(), proof.Bound))
		return proof
	}
	e.prove(ctx, p, t, track, proof)
	return proof
}

// prove searches from the best that track has seen and the bound that proof has.
func (e Exact) prove(ctx context.Context, p *plan.Problem, t *table, track *budget.Tracker, proof *Proof) {
	s := newSearch(t, track)
	s.limit, s.differs = e.limit(p), t.sending
	if track.Best().Feasible() {
		s.best = track.Best().Value
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
	best := s.track.Best()
	switch {
	case s.differs:
		s.track.Note("best found: the evaluator follows other rules than the search, which proves nothing")
	case s.stopped:
		proof.Bound = max(proof.Bound, min(s.open, s.best)*(1-tolerance))
		proof.Optimal = best.Feasible() && best.Value*(1-tolerance) <= proof.Bound
		if proof.Optimal {
			s.track.Note("OPTIMAL over all placements and priorities")
			return
		}
		s.track.Note("best found: stopped after %s; %s", words.Count(s.nodes, "node", "nodes"), gap(best, proof.Bound))
	case best.Feasible():
		proof.Optimal, proof.Bound = true, best.Value*(1-tolerance)
		s.track.Note("OPTIMAL over all placements and priorities: proven with %s", words.Count(s.nodes, "node", "nodes"))
	default:
		proof.Impossible, proof.Bound = true, math.Inf(1)
		s.track.Note("INFEASIBLE: no placement fits under any priority: proven with %s", words.Count(s.nodes, "node", "nodes"))
	}
}

// starts evaluates the plans to begin with: everything on one device, and HEFT's.
func starts(ctx context.Context, p *plan.Problem, t *table, track *budget.Tracker) {
	device := make([]uint8, t.n)
	for d := range t.d {
		if t.classes[d] != d || d > 0 && track.Done() {
			continue
		}
		for i := range device {
			device[i] = uint8(d)
		}
		track.Try(device)
	}
	if track.Done() {
		return
	}
	q := *p
	q.Report = nil
	q.JudgeBy(&unheard{p.Evaluator})
	if out, err := listsched.HEFT().Place(ctx, &q); err == nil {
		track.Try(out.Device)
	}
}

// unheard answers without evaluating: what its user finds is evaluated later.
type unheard struct{ plan.Evaluator }

func (*unheard) Evaluate(plan.Decision) plan.Score { return plan.Score{} }

// simBound returns the simulator's own bound, if the evaluator has one.
func simBound(ctx context.Context, p *plan.Problem) float64 {
	if s, ok := p.Evaluator.(interface {
		LowerBound(context.Context) *sim.Bound
	}); ok {
		if b := s.LowerBound(ctx); !b.Impossible {
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
