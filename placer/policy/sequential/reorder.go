package sequential

import (
	"context"

	"placer/plan"
	"placer/schedule"
)

// reorders reports whether the last of k samples is the best of the others in another order:
// where the schedule is decided.
func (f *Features) reorders(k int) bool { return k > 1 && f.problem.Tasks.Has(plan.Schedule) }

// reordered returns samples, of which there must be one, and behind them the best of these in
// the order of its own longest path, transfers included, justified
// (docs/adr/0058-justified-orders.md). That takes a timeline besides its evaluation. It is
// missing when ctx ends.
func (f *Features) reordered(ctx context.Context, samples []Sample) []Sample {
	if ctx.Err() != nil {
		return samples
	}
	x := Best(samples)
	x.Priority = schedule.PlacedCriticalPath(f.problem, x.Device)
	x.Priority = schedule.Justified(f.problem, x.Decision)
	x.Score = f.problem.Evaluator.Evaluate(x.Decision)
	return append(samples, x)
}
