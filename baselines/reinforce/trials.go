package reinforce

import (
	"context"
	"fmt"

	"placer/baselines/judge"
	"placer/graph/unit"
	"placer/plan"
)

// Trials are the placements that one method samples on one problem: it evaluates
// them, counts, and knows the share of the budget that is left.
type Trials struct {
	Problem     *plan.Problem
	Serial      float64 // seconds of all ops one after another
	Evaluations int
	Best        plan.Score

	judge  *judge.Judge
	start  float64 // on the problem's clock
	device []uint8 // [N]
}

// NewTrials returns the trials of method on p. Either the budget or ctx must have
// an end.
func NewTrials(ctx context.Context, p *plan.Problem, method string) (*Trials, error) {
	t := &Trials{Problem: p, judge: judge.New(ctx, p, method), device: make([]uint8, p.Graph.NumOps())}
	if t.judge.Unbounded() && ctx.Done() == nil {
		return nil, fmt.Errorf("%s: no budget bounds it", method)
	}
	if p.Clock != nil {
		t.start = p.Clock()
	}
	for _, x := range p.Evaluator.OpSeconds(0) {
		t.Serial += x
	}
	return t, nil
}

// Done reports whether the budget is spent; the first placement is always
// evaluated.
func (t *Trials) Done() bool { return t.Evaluations > 0 && t.judge.Done() }

// Try evaluates the placement that puts part u of part on device of(u).
func (t *Trials) Try(part *unit.Partition, of func(u int32) int32) plan.Score {
	for i, u := range part.Of {
		t.device[i] = uint8(of(u))
	}
	x := t.judge.Try(t.device)
	if t.Evaluations == 0 || x.Better(t.Best) {
		t.Best = x
	}
	t.Evaluations++
	return x
}

// Rate returns the learning rate, which falls linearly from full to a tenth of it
// over the budget.
func (t *Trials) Rate(full float64) float64 {
	return full * (0.1 + 0.9*(1-Spent(t.Problem, t.start, t.Evaluations)))
}

// Outcome returns the best placement.
func (t *Trials) Outcome() (*plan.Outcome, error) { return t.judge.Outcome() }
