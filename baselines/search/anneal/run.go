package anneal

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"placer/baselines/budget"
	"placer/graph/unit"
	"placer/internal/parallel"
	"placer/plan"
)

// run is the state of one Place.
type run struct {
	Placer
	ctx     context.Context
	p       *plan.Problem
	budget  plan.Budget
	started float64
	trying  float64 // seconds in try
	full    int     // evaluations of the problem
	charged float64 // those, and those of the coarsened graph by their share
	best    []uint8 // [N]
	score   plan.Score
	any     bool // best is a placement

	cells           *neighbourhood
	parts           *listing     // of cells where some lie apart
	nodes           int          // of the coarsened graph
	coarsened       int          // evaluations of it
	exact, coarsest []*objective // [replicas] that hold what the replicas of the last stage had
	votes           []float64    // [D] scratch

	mu     sync.Mutex // guards the rest, which replicas use while they run
	shown  plan.Score // the best reported
	under  int        // evaluations of the problem under way, beside full
	device []uint8    // [N] scratch
}

func newRun(ctx context.Context, a Placer, p *plan.Problem) *run {
	var both parallel.Group
	both.Go(func() { a.Shared.cellsOf(p) })
	if a.stages[0].coarse {
		both.Go(func() { _, _ = a.Shared.coarseOf(p, a.Coarsened) }) // its error is that of the stage
	}
	both.Wait()
	n := p.Graph.NumOps()
	r := &run{
		Placer: a, ctx: ctx, p: p, budget: p.Budget, started: budget.Now(p), best: make([]uint8, n), device: make([]uint8, n),
		cells: a.Shared.cellsOf(p), votes: make([]float64, p.Machine.NumDevices()),
	}
	if p.Clock == nil {
		r.budget.Seconds = 0
	}
	return r
}

// progress returns the fraction of the budget that is spent.
func (r *run) progress() float64 { return budget.Spent(r.p, r.started, r.charged) }

// done reports whether there is no room for another evaluation.
func (r *run) done() bool {
	return r.ctx.Err() != nil || r.progress() >= 1 || r.budget.Evaluations > 0 && r.charged+1 > float64(r.budget.Evaluations)
}

// turns returns how many evaluations the budget has for each unit of ops. Under a budget in
// seconds those so far say what one takes.
func (r *run) turns() float64 {
	n := float64(r.budget.Evaluations)
	if n == 0 && r.budget.Seconds > 0 {
		n = r.charged * r.budget.Seconds / max(r.trying, 1e-9)
	}
	return n / float64(r.p.Units.Levels[unit.Op].NumUnits())
}

// try evaluates a placement of the problem.
func (r *run) try(device []uint8) {
	before := budget.Now(r.p)
	s := r.p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: r.p.Priority, Fusion: r.p.Fusion})
	r.trying += budget.Now(r.p) - before
	r.full++
	r.charged++
	r.offer(device, s)
}

// offer keeps a placement if it is the best so far.
func (r *run) offer(device []uint8, s plan.Score) {
	if !r.any || s.Better(r.score) {
		r.any = true
		r.score = s
		copy(r.best, device)
		r.show(device, s)
	}
}

// show reports a placement if none as good was reported; r.mu must be held or no
// replica run.
func (r *run) show(device []uint8, s plan.Score) {
	if r.shown != (plan.Score{}) && !s.Better(r.shown) {
		return
	}
	r.shown = s
	if r.p.Report != nil {
		r.p.Report(plan.Progress{Method: r.Name(), Evaluations: r.full + r.under, Best: s, Decision: plan.Decision{Device: device}})
	}
}

// stage runs stage k on all replicas.
func (r *run) stage(k int) error {
	s := &r.stages[k]
	if k == 0 && r.Fine && !s.coarse {
		r.cells = r.cells.apart(r.p, r.best, r.votes)
	}
	t, proto, err := r.objectiveOf(s)
	if err != nil || proto == nil {
		return err
	}
	var recreate *listing
	if r.Recreate && !s.ops {
		if recreate, err = r.listingOf(r.cells); err != nil {
			return err
		}
	}
	left := 0.0
	for _, x := range r.stages[k:] {
		left += x.share
	}
	part := (1 - r.progress()) * s.share / left
	if part <= 0 {
		return nil // to coarsen the graph took the rest
	}
	w := make([]*replica, r.replicas)
	from, allowed := t.decisions(r.best, r.votes), r.Allowance.of(t.fine, r.p.Machine.NumDevices())
	for i := range w {
		a := r.ownObjective(i, s.coarse, proto)
		a.heat = math.Pow(coolest, float64(i)/float64(max(1, len(w)-1)))
		w[i] = newReplica(t, a, r.p.Machine.NumDevices(), rand.NewPCG(r.p.Seed, uint64(k)<<32+uint64(i)))
		w[i].allowance, w[i].settled = allowed, r.Fine
		if recreate != nil {
			w[i].recreation = newRecreation(recreate)
			w[i].recreation.allowance = allowed
		}
		w[i] = r.advised(w[i], s)
	}
	r.walk(s, w, from, part)
	return nil
}

// listingOf returns what list scheduling knows of the decisions of t.
func (r *run) listingOf(t *neighbourhood) (*listing, error) {
	if t == r.Shared.cellsOf(r.p) {
		return r.Shared.listingOf(r.p)
	}
	if r.parts == nil {
		var err error
		if r.parts, err = newListing(r.p, t); err != nil {
			return nil, err
		}
	}
	return r.parts, nil
}

// ownObjective returns the objective of replica i on the decisions of proto. Its
// evaluator is the same in all stages on the problem, and in all on the coarsened graph.
func (r *run) ownObjective(i int, coarse bool, proto *objective) *objective {
	all := &r.exact
	if coarse {
		all = &r.coarsest
	}
	if len(*all) == i {
		own := proto.clone()
		if i == 0 && own.moves == nil {
			own.evaluator = proto.evaluator
		}
		*all = append(*all, own)
	}
	a := *(*all)[i]
	a.members = proto.members
	return &a
}

// walk runs the replicas from the same decisions for part of the budget, in
// rounds.
func (r *run) walk(s *stage, ws []*replica, from []uint8, part float64) {
	q := quota{evaluations: part * float64(r.budget.Evaluations) / float64(len(ws)) / ws[0].objective.share, seconds: part * r.budget.Seconds}
	if r.budget.Evaluations > 0 && q.evaluations < 2 {
		return
	}
	if r.budget.Seconds > 0 {
		q.begin = r.p.Clock()
	}
	for round := range rounds {
		next := make(chan *replica, len(ws))
		for _, w := range ws {
			next <- w
		}
		close(next)
		var wait parallel.Group
		for range r.Workers {
			wait.Go(func() {
				for w := range next {
					if round == 0 {
						w.start(from)
					}
					r.anneal(s, w, &q, float64(round+1)/rounds)
				}
			})
		}
		wait.Wait()
		r.collect(s, ws)
		if r.done() {
			return
		}
		r.exchange(ws, 2*s.temperature(float64(round+1)/rounds), &q)
	}
}

// quota bounds what one replica spends in a stage.
type quota struct {
	evaluations    float64
	begin, seconds float64
}

// spent returns the fraction of the quota that w has spent.
func (r *run) spentOf(q *quota, w *replica) float64 {
	x := 0.0
	if r.budget.Evaluations > 0 {
		x = float64(w.spent+1) / q.evaluations
	}
	switch {
	case r.budget.Seconds > 0 && q.seconds > 0:
		x = max(x, (r.p.Clock()-q.begin)/q.seconds)
	case r.budget.Seconds > 0:
		x = math.Inf(1)
	}
	return x
}

// coolest is the temperature of the last replica as a share of the first one's;
// those between are spread geometrically. Hot replicas find other basins, cool ones
// explore the one they start in.
const coolest = 0.25

// idleMoves is how many moves in a row may come to nothing before a replica gives
// up: there may be nothing to move.
const idleMoves = 1000

// anneal steps w until it has spent fraction until of its quota.
func (r *run) anneal(s *stage, w *replica, q *quota, until float64) {
	for idle := 0; idle < idleMoves && r.ctx.Err() == nil; {
		x := r.spentOf(q, w)
		if x > until {
			return
		}
		before := w.spent
		if w.step(w.objective.heat*s.temperature(min(x, 1)), s.run) && !s.coarse {
			r.mu.Lock()
			r.show(w.objective.device, w.bestAt)
			r.mu.Unlock()
		}
		if w.spent == before {
			idle++
			continue
		}
		idle = 0
		if !s.coarse {
			r.mu.Lock()
			r.under++
			r.mu.Unlock()
		}
	}
}

// collect accounts for what the replicas spent since the last time and takes over
// their best, in their order.
func (r *run) collect(s *stage, ws []*replica) {
	for _, w := range ws {
		n := w.spent - w.accounted
		w.accounted = w.spent
		r.charged += float64(n) * w.objective.share
		if s.coarse {
			r.coarsened += n
		} else {
			r.full += n
		}
	}
	r.under = 0
	for i, w := range ws {
		if s.coarse {
			if i > 0 && sameDecisions(w.best, ws[0].best) || !w.fresh || r.done() {
				continue
			}
			w.fresh = false
			w.expand(w.best, r.device)
			r.try(r.device)
			continue
		}
		if w.bestAt.Better(r.score) {
			w.expand(w.best, r.device)
			r.offer(r.device, w.bestAt)
		}
	}
}

func sameDecisions(a, b []uint8) bool { return string(a) == string(b) }

// exchange sends replicas that are worse than the best by more than slack, as a
// fraction, to where the best is.
func (r *run) exchange(ws []*replica, slack float64, q *quota) {
	best := ws[0]
	for _, w := range ws {
		if w.bestAt.Better(best.bestAt) {
			best = w
		}
	}
	for _, w := range ws {
		if w != best && w.cost > best.bestCost*(1+slack) && r.spentOf(q, w) <= 1 {
			w.visit(best.best)
		}
	}
}

// objectiveOf returns the neighbourhood and a prototype objective of stage s; no objective where
// the stage is of no use.
func (r *run) objectiveOf(s *stage) (*neighbourhood, *objective, error) {
	switch {
	case s.alike:
		t := r.Shared.alikeOf(r.p)
		return t, exactObjective(r.p, t), nil
	case s.ops:
		t := r.Shared.opsOf(r.p)
		return t, exactObjective(r.p, t), nil
	case !s.coarse:
		return r.cells, exactObjective(r.p, r.cells), nil
	}
	c, err := r.Shared.coarseOf(r.p, r.Coarsened)
	if err != nil {
		return nil, nil, err
	}
	r.nodes = c.nodes
	return r.cells, c.proto, nil
}

// exactObjective returns a prototype objective of t's decisions on p.
func exactObjective(p *plan.Problem, t *neighbourhood) *objective {
	return &objective{evaluator: p.Evaluator, newMoves: p.Moves, given: plan.Decision{Priority: p.Priority, Fusion: p.Fusion}, device: make([]uint8, p.Graph.NumOps()), members: t.fine.Ops, share: 1, penalty: newPenalty(p.Machine, p.Evaluator)}
}
