package reinforce

import (
	"context"
	"fmt"

	"placer/baselines/budget"
	"placer/graph/unit"
	"placer/plan"
)

// Trials are the placements that one method samples on one problem: it evaluates
// them, counts, and knows the share of the budget that is left.
type Trials struct {
	*budget.Tracker
	Problem *plan.Problem
	Serial  float64 // seconds of all ops one after another

	device []uint8 // [N]
}

// NewTrials returns the trials of method on p. Either the budget or ctx must have
// an end.
func NewTrials(ctx context.Context, p *plan.Problem, method string) (*Trials, error) {
	if budget.Unbounded(p) && ctx.Done() == nil {
		return nil, fmt.Errorf("%s: no budget bounds it", method)
	}
	t := &Trials{Tracker: budget.New(ctx, p, method), Problem: p, device: make([]uint8, p.Graph.NumOps())}
	for _, x := range p.Evaluator.OpSeconds(0) {
		t.Serial += x
	}
	return t, nil
}

// Done reports whether the budget is spent; the first placement is always
// evaluated.
func (t *Trials) Done() bool { return t.Evaluations() > 0 && t.Tracker.Done() }

// TryUnits evaluates the placement that puts part u of part on device of(u).
func (t *Trials) TryUnits(part *unit.Partition, of func(u int32) int32) plan.Score {
	for i, u := range part.Of {
		t.device[i] = uint8(of(u))
	}
	return t.Try(t.device)
}

// Rate returns the learning rate, which falls linearly from full to a tenth of it
// over the budget.
func (t *Trials) Rate(full float64) float64 {
	return full * (0.1 + 0.9*(1-min(t.Spent(), 1)))
}

// Samples returns the samples of a round, fewer than most where a small budget
// would else have less than a few rounds.
func Samples(p *plan.Problem, most int) int {
	k := most
	for n := p.Budget.Evaluations; n > 0 && k > 2 && k*8 > n; {
		k /= 2
	}
	return k
}
