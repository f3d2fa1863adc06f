package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"placer/baselines/budget"
	"placer/internal/parallel"
	"placer/plan"
)

// Candidate is a plan that decisions are written into.
type Candidate struct {
	plan.Decision
	count []int32 // scratch
}

// Run is one method at work on one problem: it evaluates decisions, keeps the best
// plan and tracks the budget.
type Run struct {
	Problem *plan.Problem
	Method  string // in what is reported
	// Best is the best plan so far, nil before the first, and Score its score.
	Best  *Candidate
	Score plan.Score
	// Round is the best score since it was last set to nil.
	Round *plan.Score
	// Scores are those of the last Evaluate; Final says which of them are final, nil
	// for all. The others are estimates.
	Scores []plan.Score
	Final  []bool
	// Resumed is the share of the whole budget that was spent before; above 0 with
	// budgets in seconds alone.
	Resumed float64

	decode      func(action []int32, to *Candidate)
	workers     []*worker // as many as a round has needed at once
	least       int       // that share a round, if it has as many samples
	evaluations int
	start       float64 // on the problem's clock
}

// worker owns what one goroutine needs to evaluate.
type worker struct {
	evaluator plan.Evaluator
	*Candidate
}

// New returns a run of method on p by workers goroutines, and in a round by as many more
// as keep the problem's rollouts busy when it begins. It reports a task without what it
// builds on.
func New(p *plan.Problem, method string, workers int) (*Run, error) {
	if !p.Decides(plan.Place) && len(p.Device) != p.Graph.NumOps() {
		return nil, fmt.Errorf("policy: %v without a placement of the %d ops", p.Tasks, p.Graph.NumOps())
	}
	r := &Run{Problem: p, Method: method, least: workers}
	r.start = budget.Now(p)
	return r, nil
}

// busy returns the workers for a round of so many samples that begins now.
func (r *Run) busy(samples int) []*worker {
	n, evaluator := r.least, r.Problem.Evaluator
	if x := r.Problem.Rollouts; x != nil {
		n, evaluator = max(n, x.Parallel()), x
	}
	n = min(n, samples)
	for len(r.workers) < n {
		if len(r.workers) > 0 {
			evaluator = evaluator.Clone()
		}
		r.workers = append(r.workers, &worker{evaluator, r.NewCandidate()})
	}
	return r.workers[:n]
}

// NewCandidate returns a candidate that holds what is given and has room for what is decided.
func (r *Run) NewCandidate() *Candidate {
	p, n := r.Problem, r.Problem.Graph.NumOps()
	d := &Candidate{Decision: p.Decision}
	d.Device = make([]uint8, n)
	copy(d.Device, p.Device)
	if p.Decides(plan.Schedule) {
		d.Priority = make([]int32, n)
	}
	if p.Decides(plan.Fuse) {
		d.Fusion = make([]uint8, n)
	}
	return d
}

// Decodes makes decode read the decisions to come.
func (r *Run) Decodes(decode func(action []int32, to *Candidate)) { r.decode = decode }

// Evaluate scores the decisions actions[k] into r.Scores[k]. The result does not
// depend on the number of workers, nor on which of them evaluates what. When ctx ends, the
// best of those that have been evaluated counts, and the cause is returned: there is nothing
// to learn from the round. A round that is measured is measured to its end.
func (r *Run) Evaluate(ctx context.Context, actions [][]int32) error {
	if len(r.Scores) != len(actions) {
		r.Scores = make([]plan.Score, len(actions))
	}
	evaluated := make([]bool, len(actions))
	var wait parallel.Group
	var next atomic.Int64
	for _, w := range r.busy(len(actions)) {
		wait.Go(func() {
			for {
				j := int(next.Add(1)) - 1
				if j >= len(actions) || r.Problem.Rollouts == nil && ctx.Err() != nil {
					return
				}
				r.decode(actions[j], w.Candidate)
				r.Scores[j], evaluated[j] = w.evaluator.Evaluate(w.Decision), true
			}
		})
	}
	wait.Wait()
	if r.Problem.Rollouts != nil {
		r.Final = r.Problem.Rollouts.Refine(r.Scores, func(k int) plan.Decision {
			d := r.NewCandidate()
			r.decode(actions[k], d)
			return d.Decision
		})
	}
	r.keepBest(actions, evaluated)
	if slices.Contains(evaluated, false) {
		return context.Cause(ctx)
	}
	return nil
}

// keepBest counts the decisions that have been evaluated and keeps the best.
func (r *Run) keepBest(actions [][]int32, evaluated []bool) {
	improved := false
	for k, s := range r.Scores {
		if !evaluated[k] {
			continue
		}
		r.evaluations++
		if !r.isFinal(k) {
			continue
		}
		if r.Round == nil || s.Better(*r.Round) {
			r.Round = &s
		}
		if r.Best == nil || s.Better(r.Score) {
			if r.Best == nil {
				r.Best = r.NewCandidate()
			}
			r.decode(actions[k], r.Best)
			r.Score, improved = s, true
		}
	}
	r.report(improved)
}

// isFinal reports whether the score of sample k is more than an estimate. That a
// sample does not fit is never one.
func (r *Run) isFinal(k int) bool {
	return r.Final == nil || r.Final[k] || !r.Scores[k].Feasible()
}

func (r *Run) report(improved bool) {
	if r.Problem.Report == nil {
		return
	}
	x := plan.Progress{Method: r.Method, Evaluations: r.evaluations, Best: r.Score}
	if improved {
		x.Decision = r.Problem.Decided(r.Best.Decision)
	}
	r.Problem.Report(x)
}

// Each divides 0..n-1 among Workers goroutines: do is called with the number of one and
// what is its.
func (r *Run) Each(n int, do func(worker, j int)) {
	var wait parallel.Group
	for k := range r.least {
		wait.Go(func() {
			for j := k; j < n; j += r.least {
				do(k, j)
			}
		})
	}
	wait.Wait()
}

// Workers is the number of goroutines that New was asked for.
func (r *Run) Workers() int { return r.least }

// Spent is the share of the budget that is used up.
func (r *Run) Spent() (share float64) {
	b := r.Problem.Budget
	if b.Evaluations > 0 {
		share = float64(r.evaluations) / float64(b.Evaluations)
	}
	if b.Seconds > 0 {
		share = max(share, r.Resumed+(1-r.Resumed)*(budget.Now(r.Problem)-r.start)/b.Seconds)
	}
	return min(share, 1)
}

// Done reports whether another round as large as the last would exceed the budget.
func (r *Run) Done(ctx context.Context) bool {
	if ctx.Err() != nil || r.Spent() >= 1 {
		return true
	}
	n := r.Problem.Budget.Evaluations
	return n > 0 && r.evaluations+len(r.Scores) > n
}

// Begin makes o, what an earlier run came to, the best so far, if it has all that
// is decided.
func (r *Run) Begin(o *plan.Outcome) bool {
	if o == nil || !r.Problem.DecidedBy(o.Decision) {
		return false
	}
	r.Best, r.Score = r.NewCandidate(), o.Score
	copy(r.Best.Device, o.Device)
	if r.Problem.Decides(plan.Schedule) {
		copy(r.Best.Priority, o.Priority)
	}
	if r.Problem.Decides(plan.Fuse) {
		copy(r.Best.Fusion, o.Fusion)
	}
	return true
}

// ErrNothingSampled is of a budget that ends before the first round.
var ErrNothingSampled = errors.New("policy: no placement was sampled within the budget")

// Outcome returns the best plan. It reports why there is none.
func (r *Run) Outcome(ctx context.Context) (*plan.Outcome, error) {
	if r.Best == nil {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("policy: stopped before its first placement: %w", err)
		}
		return nil, ErrNothingSampled
	}
	return &plan.Outcome{Decision: r.Problem.Decided(r.Best.Decision), Score: r.Score, Evaluations: r.evaluations}, nil
}

// Ended is Outcome after learning that ended with err, nil where nothing failed: what was
// found before counts all the same, with a note that says why there is no more. It returns
// err where nothing was found.
func (r *Run) Ended(ctx context.Context, err error) (*plan.Outcome, error) {
	if ctx.Err() != nil {
		err = nil // it is ctx's, which Outcome tells of
	}
	if err != nil && r.Best == nil {
		return nil, err
	}
	o, none := r.Outcome(ctx)
	if none == nil && err != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("learning ended early: %v", err))
	}
	return o, none
}

// LeastRound is the least number of samples that FitSamples comes to.
const LeastRound = 8

// FitSamples halves the samples of a round, down to LeastRound, until the budget has
// eight rounds to learn from.
func FitSamples(samples, evaluations int) int {
	for evaluations > 0 && samples > LeastRound && samples*8 > evaluations {
		samples /= 2
	}
	return samples
}
