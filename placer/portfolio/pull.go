package portfolio

import (
	"context"
	"fmt"
	"sync/atomic"

	"placer/plan"
)

// pull is one run of an arm.
type pull struct {
	arm, walker int
	start       plan.Decision
	budget      plan.Budget
	cut         int64 // evaluations after which it is cut off; 0: never
	seed        uint64
	charge      float64 // evaluations
	evaluator   plan.Evaluator
	outcome     *plan.Outcome // nil where there is no placement
	err         error
}

// newPull prepares a pull of arm i by walker w in round k. It must be called from one
// goroutine.
func (r *run) newPull(k, w, i int, slice, left float64) *pull {
	x := &pull{arm: i, walker: w, evaluator: r.p.Evaluator.Clone(), seed: r.seed(k, w, i)}
	if r.Arms[i].FromBest {
		x.start = r.startOf(w)
	}
	if r.budget.Evaluations == 0 {
		x.budget.Seconds = slice
		return x
	}
	x.budget.Evaluations = max(1, int(slice))
	x.charge = float64(x.budget.Evaluations)
	if x.charge > left {
		x.cut, x.charge = max(1, int64(left)), max(1, left)
	}
	return x
}

// again prepares another pull in round k by the walker whose pull x has ended, of arm i,
// within what x has left.
func (r *run) again(k int, x *pull, i int, rest plan.Budget) *pull {
	y := &pull{arm: i, walker: x.walker, evaluator: x.evaluator, budget: rest, cut: x.cut, seed: r.seed(k, x.walker, i)}
	if r.Arms[i].FromBest {
		y.start = r.startOf(x.walker)
	}
	return y
}

func (r *run) seed(k, w, i int) uint64 {
	return plan.StreamSeed(r.p.Seed, fmt.Sprintf("%s %d %d", r.Arms[i].Name, k, w))
}

// startOf returns the plan that walker w goes on from.
func (r *run) startOf(w int) plan.Decision {
	if r.own[w].Device != nil {
		return r.own[w].Decision
	}
	return r.best.Clone()
}

// run makes the pull.
func (x *pull) run(r *run) {
	placer, err := r.Arms[x.arm].New(x.start, x.walker)
	if err != nil {
		x.err = err
		return
	}
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	q := *r.p
	q.Evaluator, q.Budget, q.Seed = x.evaluator, x.budget, x.seed
	if x.cut > 0 {
		var left atomic.Int64
		left.Store(x.cut)
		q.JudgeBy(&limited{x.evaluator, &left, stop})
	}
	q.Report = func(y plan.Progress) { r.report(x.walker, y) }
	x.outcome, x.err = placer.Place(ctx, &q)
}

// limited is an evaluator that ends a run with its last evaluation.
type limited struct {
	plan.Evaluator
	left *atomic.Int64
	stop context.CancelFunc
}

// Evaluate is as plan.Evaluator says.
func (l *limited) Evaluate(d plan.Decision) plan.Score {
	s := l.Evaluator.Evaluate(d)
	if l.left.Add(-1) <= 0 {
		l.stop()
	}
	return s
}

// Clone is as plan.Evaluator says.
func (l *limited) Clone() plan.Evaluator { return &limited{l.Evaluator.Clone(), l.left, l.stop} }
