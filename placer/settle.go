package placer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"placer/plan"
)

// settling is the last part of the training of a policy that decides placement
// with other tasks: by turns, these are learnt on the best placement, where
// schedules refine the best one and fusion is decided by class, and the placement
// is learnt near where it is, under what they came to. Each turn has a network of
// its own.
type settling struct {
	policy *Policy
	run    *training
	best   plan.Score // of all turns
	spent  int
	turns  int
}

// settle spends what the curricula have left of the budget, and replaces what it
// improves in o, which is complete.
func (p *Policy) settle(ctx context.Context, run *training, o *plan.Outcome) error {
	if !isJoint(run.env.tasks) {
		return nil
	}
	s := &settling{policy: p, run: run, best: o.Score, spent: o.Evaluations}
	c, rest := p.config.Joint, run.env.tasks&^plan.Place
	x, err := s.turn(ctx, rest, c.Settle, *o)
	if x != nil && x.Score.Better(o.Score) {
		*o = *x
	}
	if given := run.problem.Device; x != nil && len(given) == run.problem.Graph.NumOps() {
		// The placement to start from may be worth more once the rest is learnt on it.
		if x, err = s.turn(ctx, rest, c.Settle, plan.Outcome{Device: given}); x != nil && x.Score.Better(o.Score) {
			*o = *x
		}
	}
	for k := 0; x != nil; k++ {
		tasks, share := plan.Place, c.Move
		if k%2 > 0 {
			tasks, share = rest, c.Settle
		}
		if x, err = s.turn(ctx, tasks, share, *o); x != nil && x.Score.Better(o.Score) {
			*o = *x
		}
	}
	o.Evaluations = s.spent
	return err
}

// turn learns tasks in a share of the budget, starting from what o decides, and
// returns all that is then decided; nil where the budget does not reach.
func (s *settling) turn(ctx context.Context, tasks plan.Tasks, share float64, o plan.Outcome) (*plan.Outcome, error) {
	whole := s.run.problem
	p := *whole
	p.Tasks, p.Device = tasks, o.Device
	p.Seed = streamSeed(whole.Seed, fmt.Sprint("settle ", s.turns))
	s.turns++
	if o.Priority != nil {
		p.Priority = o.Priority
	}
	if o.Fusion != nil {
		p.Fusion = o.Fusion
	}
	fine := &Policy{config: s.policy.config, device: s.policy.device, near: tasks == plan.Place}
	// Evaluators on other hosts do not tell the time of kernels; the plan must not
	// depend on where samples are evaluated.
	fine.config.Classes.LocalCredit, fine.config.Fusion.Local = 0, 0
	fine.config.Imitation = fine.config.Joint.Imitation
	if n := whole.Budget.Evaluations; n > 0 {
		p.Budget.Evaluations = min(max(1, int(share*float64(n))), n-s.spent)
		k := fitSamples(fine.config.forTasks(&p).Training, max(1, p.Budget.Evaluations))
		if p.Budget.Evaluations < k {
			return nil, nil // not a round
		}
	}
	if seconds := whole.Budget.Seconds; seconds > 0 {
		p.Budget.Seconds = min(share*seconds/(1-s.run.from), seconds-(now(whole)-s.run.start))
		if p.Budget.Seconds <= 0 {
			return nil, nil
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	s.policy.at.Spent = s.run.spent()
	p.Report = s.report(&p)
	x, err := fine.Place(ctx, &p)
	if x != nil {
		s.spent += x.Evaluations
	}
	if ctx.Err() != nil || errors.Is(err, errNothingSampled) {
		err = nil
	}
	return s.complete(x, &p), err
}

// complete adds what p has given to what x decides.
func (s *settling) complete(x *plan.Outcome, p *plan.Problem) *plan.Outcome {
	if x == nil {
		return nil
	}
	if s.run.env.tasks.Has(plan.Schedule) && x.Priority == nil {
		x.Priority = p.Priority
	}
	if s.run.env.tasks.Has(plan.Fuse) && x.Fusion == nil {
		x.Fusion = p.Fusion
	}
	return x
}

// report returns what tells of turn p as of a part of the whole: what is no better
// than the best of all turns is not told.
func (s *settling) report(p *plan.Problem) func(plan.Progress) {
	whole, spent := s.run.problem.Report, s.spent
	if whole == nil {
		return nil
	}
	return func(x plan.Progress) {
		x.Method = cmp.Or(s.run.method, x.Method)
		x.Evaluations += spent
		switch {
		case !x.Best.Better(s.best):
			x.Best, x.Device, x.Priority, x.Fusion = s.best, nil, nil, nil
		case x.Device != nil:
			s.best = x.Best
			o := s.complete(&plan.Outcome{Priority: x.Priority, Fusion: x.Fusion}, p)
			x.Priority, x.Fusion = o.Priority, o.Fusion
		}
		whole(x)
	}
}
