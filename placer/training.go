package placer

import (
	"context"
	"slices"

	"placer/plan"
)

// training scores what the trainer samples and keeps the best. It implements
// ppo.Env.
type training struct {
	env     *environment
	problem *plan.Problem
	method  string
	start   float64 // on the problem's clock
	from    float64 // share of the budget that was spent before start; above 0 with seconds alone
	end     float64 // share of the budget that the stages of learn have
	scores  []plan.Score
	best    *draft // nil before the first score
	score   plan.Score
	round   *plan.Score // the best since it was last set to nil
	resumed *position   // where a checkpoint goes on; nil without one, or once it does
	notes   []string
}

func now(p *plan.Problem) float64 {
	if p.Clock == nil {
		return 0
	}
	return p.Clock()
}

// spent is the share of the budget that is used up.
func (t *training) spent() (share float64) {
	if n := t.problem.Budget.Evaluations; n > 0 {
		share = float64(t.env.spent) / float64(n)
	}
	if s := t.problem.Budget.Seconds; s > 0 {
		share = max(share, t.from+(1-t.from)*(now(t.problem)-t.start)/s)
	}
	return min(share, 1)
}

// done reports whether another round would exceed the budget.
func (t *training) done(ctx context.Context) bool {
	if ctx.Err() != nil || t.spent() >= 1 {
		return true
	}
	n := t.problem.Budget.Evaluations
	return n > 0 && t.env.spent+len(t.scores) > n
}

// Rewards is as ppo.Env says.
func (t *training) Rewards(actions [][]int32, rewards []float32) error {
	if len(t.scores) != len(actions) {
		t.scores = make([]plan.Score, len(actions))
	}
	t.env.evaluate(actions, t.scores)
	improved := false
	for k, s := range t.scores {
		rewards[k] = t.env.reward(s)
		if !t.env.isExact(k, s) {
			continue
		}
		if t.round == nil || s.Better(*t.round) {
			t.round = &s
		}
		if t.best == nil || s.Better(t.score) {
			if t.best == nil {
				t.best = t.env.newDraft(len(t.env.part.Of))
			}
			t.env.decode(actions[k], t.best)
			t.score, improved = s, true
		}
	}
	t.soften(rewards)
	if report := t.problem.Report; report != nil {
		p := plan.Progress{Method: t.method, Evaluations: t.env.spent, Best: t.score}
		if improved {
			p.Device = t.best.device
			if t.env.tasks.Has(plan.Schedule) {
				p.Priority = t.best.priority
			}
			if t.env.tasks.Has(plan.Fuse) {
				p.Fusion = t.best.fusion
			}
		}
		report(p)
	}
	return nil
}

// soften keeps infeasible samples from drowning the differences between the
// feasible ones of a round once rewards are standardised: below the worst
// feasible one by the feasible ones' range, or ordered by overflow where none
// fits.
func (t *training) soften(rewards []float32) {
	var feasible []float32
	for k, s := range t.scores {
		if s.Feasible() {
			feasible = append(feasible, rewards[k])
		}
	}
	if len(feasible) == len(rewards) {
		return
	}
	capacity := float32(t.problem.Machine.Devices[0].Memory)
	if len(feasible) == 0 {
		for k, s := range t.scores {
			rewards[k] = infeasibleReward - float32(s.Overflow)/capacity
		}
		return
	}
	low, high := slices.Min(feasible), slices.Max(feasible)
	for k, s := range t.scores {
		if !s.Feasible() {
			rewards[k] = max(infeasibleReward, low-(high-low)-1e-3)
		}
	}
}
