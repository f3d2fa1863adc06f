package placer

import (
	"context"

	"placer/plan"
)

// settle is the last stage of a curriculum with several tasks: what is left of
// the budget after the others goes to the tasks beside placement, given the best
// placement that was sampled, by a network of their own. Schedules refine the best
// one, fusion is decided by class. It replaces in o what comes out better.
func (p *Policy) settle(ctx context.Context, run *training, o *plan.Outcome) error {
	if !isJoint(run.env.tasks) || run.spent() >= 1 || ctx.Err() != nil {
		return nil
	}
	problem, spent := run.problem, run.env.spent
	fine := &Policy{config: p.config, device: p.device}
	// Evaluators on other hosts do not tell the time of kernels; the plan must not
	// depend on where samples are evaluated.
	fine.config.Classes.LocalCredit = 0
	rest := *problem
	rest.Tasks = run.env.tasks &^ plan.Place
	rest.Seed = streamSeed(problem.Seed, "settle")
	rest.Device = o.Device
	if o.Priority != nil {
		rest.Priority = o.Priority
	}
	if n := problem.Budget.Evaluations; n > 0 {
		rest.Budget.Evaluations = n - spent
		if k := fine.config.forTasks(&rest).Training; rest.Budget.Evaluations < fitSamples(k, max(rest.Budget.Evaluations, 1)) {
			return nil // not a round
		}
	}
	if s := problem.Budget.Seconds; s > 0 {
		rest.Budget.Seconds = s - (now(problem) - run.start)
	}
	if report := problem.Report; report != nil {
		best := o.Score
		rest.Report = func(x plan.Progress) {
			x.Evaluations += spent
			switch {
			case !x.Best.Better(best):
				x.Best, x.Device, x.Priority, x.Fusion = best, nil, nil, nil
			case x.Device != nil:
				best = x.Best
			}
			report(x)
		}
	}
	x, err := fine.Place(ctx, &rest)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	o.Evaluations += x.Evaluations
	if !x.Score.Better(o.Score) {
		return nil
	}
	o.Score = x.Score
	if x.Priority != nil {
		o.Priority = x.Priority
	}
	if x.Fusion != nil {
		o.Fusion = x.Fusion
	}
	return nil
}
