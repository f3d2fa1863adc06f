package sequential

import (
	"context"

	"placer/plan"
	"placer/schedule"
)

// Fine-tuning learns placement. Where schedule and fusion are asked for too, every placement
// is judged under those of the best zero-shot sample, and the best that is found is decided
// anew in the end (docs/adr/0104-fine-tuning-of-all-tasks.md).

// hold makes the schedule and the fusion of the best zero-shot sample those that all
// placements are judged under, the other samples among them.
func (r *tuning) hold(ctx context.Context) {
	best := bestAt(r.zeroShot)
	held := *r.features.problem
	held.Tasks = plan.Place
	held.Priority, held.Fusion = r.zeroShot[best].Priority, r.zeroShot[best].Fusion
	r.problem = &held
	r.judgeAgain(ctx, func(i int, x *Sample) bool {
		x.Priority, x.Fusion = held.Priority, held.Fusion
		return i != best
	})
}

// decideAnew returns a decision, which scores as score says, with the schedule and fusion
// that the policy gives its placement at each level, or in the order of the placement's own
// longest path, justified, where one of these is better.
func (r *tuning) decideAnew(ctx context.Context, d plan.Decision, score plan.Score) (plan.Decision, plan.Score) {
	f := r.features
	offer := func(x plan.Decision) {
		if n := f.problem.Budget.Evaluations; ctx.Err() != nil || r.pace.over() || n > 0 && r.state.Evaluations >= n {
			return
		}
		r.state.Evaluations++
		if s := f.problem.Evaluator.Evaluate(x); s.Better(score) {
			d, score = x.Clone(), s
		}
	}
	for l := range level(len(f.at)) {
		offer(f.decision(r.Policy, l, d.Device))
	}
	if f.problem.Decides(plan.Schedule) {
		x := f.problem.Complete(d)
		x.Priority = schedule.PlacedCriticalPath(f.problem, x.Device)
		x.Priority = schedule.Justified(f.problem, x)
		offer(x)
	}
	return f.problem.Decided(d), score
}
