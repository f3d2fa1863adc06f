package joint

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"placer/baselines/budget"
	"placer/placer/policy/cem"
	"placer/placer/policy/fusion"
	"placer/placer/policy/rollout"
	"placer/plan"
)

// Policy decides any tasks but placement or schedule alone. It implements plan.Placer.
type Policy struct {
	Config Config
	// Explore decides all tasks at once and Fuse fusion on a given placement, from
	// nothing.
	Explore, Fuse plan.Placer
	// These begin at the plan that the problem has, and decide one task.
	RefinePlacement, RefineSchedule, RefineFusion plan.Placer

	spent   float64       // share of the budget, of the last Place
	earlier *plan.Outcome // of a run to go on with; nil for none
	path    string        // what that has saved
}

// New returns the policy of go-figure6, of the cross-entropy method and fusion by class.
func New(c cem.Config, f fusion.Config) *Policy {
	return &Policy{
		Config: Default(), Explore: cem.Policy{Config: c}, Fuse: fusion.Policy{Config: f},
		RefinePlacement: cem.Refiner{Config: c}, RefineSchedule: cem.Policy{Config: c}, RefineFusion: fusion.Refiner{Config: f},
	}
}

// Name is as plan.Placer says.
func (*Policy) Name() string { return "joint" }

// Kind is as plan.Placer says.
func (*Policy) Kind() plan.Kind { return plan.Policy }

// Place alternates between the tasks until the budget is spent and returns the best
// plan.
func (p *Policy) Place(ctx context.Context, whole *plan.Problem) (*plan.Outcome, error) {
	if err := p.Config.Validate(); err != nil {
		return nil, err
	}
	t := &alternation{Policy: p, ctx: ctx, whole: whole, seconds: whole.Budget.Seconds, restShare: p.Config.RefineRest}
	t.start = budget.Now(whole)
	if whole.Decides(plan.Schedule | plan.Fuse) {
		t.restShare /= 2
	}
	t.resume()
	err := t.begin()
	for err == nil {
		err = t.refine()
	}
	p.spent = t.share()
	if errors.Is(err, errOver) {
		err = nil
	}
	if t.best.Device == nil {
		return nil, cmp.Or(err, context.Cause(ctx), rollout.ErrNothingSampled)
	}
	return &plan.Outcome{Decision: t.whole.Decided(t.best), Score: t.score, Evaluations: t.spent, Notes: t.notes}, err
}

// begin comes to a first plan, from nothing.
func (t *alternation) begin() error {
	explore := t.Config.Explore - t.before
	switch {
	case explore <= 0: // an earlier run has
		return nil
	case t.whole.Tasks == plan.Fuse:
		_, err := t.step(t.Fuse, plan.Fuse, 1, t.whole.Decision)
		return err
	case !t.whole.Decides(plan.Place):
		return t.rest(t.whole.Decision, explore)
	}
	found, err := t.step(t.Explore, t.whole.Tasks, explore, t.whole.Decision)
	if err != nil {
		return err
	}
	if err := t.rest(found, t.restShare); err != nil || len(t.whole.Device) != len(found.Device) {
		return err
	}
	// The given placement may be worth more once the rest is decided on it.
	return t.rest(t.whole.Decision, t.restShare)
}

// refine has a step of each task on the best plan.
func (t *alternation) refine() error {
	for _, x := range []struct {
		task   plan.Tasks
		method plan.Placer
		share  float64
	}{{plan.Place, t.RefinePlacement, t.Config.RefinePlacement}, {plan.Schedule, t.RefineSchedule, t.restShare}, {plan.Fuse, t.RefineFusion, t.restShare}} {
		if !t.whole.Decides(x.task) {
			continue
		}
		if _, err := t.step(x.method, x.task, x.share, t.best); err != nil {
			return err
		}
	}
	return nil
}

// errOver says that the budget has no room for another step.
var errOver = errors.New("the budget is spent")

// alternation is a policy at work on one problem: block-coordinate ascent, a task at a
// time.
type alternation struct {
	*Policy
	ctx       context.Context
	whole     *plan.Problem
	best      plan.Decision // complete; Device is nil before the first
	score     plan.Score
	restShare float64 // share of a step that decides schedule or fusion
	before    float64 // share that an earlier run has spent
	seconds   float64 // of the budget, with the earlier run's
	start     float64 // on the problem's clock
	spent     int     // evaluations
	count     int     // steps
	notes     []string
}

// rest decides fusion and schedule on the placement of d, from nothing, each in a
// share of the budget.
func (t *alternation) rest(d plan.Decision, share float64) (err error) {
	if t.whole.Decides(plan.Fuse) {
		if d, err = t.step(t.Fuse, plan.Fuse, share, d); err != nil {
			return err
		}
	}
	if t.whole.Decides(plan.Schedule) {
		_, err = t.step(t.RefineSchedule, plan.Schedule, share, d)
	}
	return err
}

// step has method decide tasks, with the rest as in d, in a share of the budget, and
// returns d with what it came to.
func (t *alternation) step(method plan.Placer, tasks plan.Tasks, share float64, d plan.Decision) (plan.Decision, error) {
	p := *t.whole
	p.Tasks, p.Decision = tasks, d
	p.Seed = plan.StreamSeed(t.whole.Seed, fmt.Sprint("turn ", t.count))
	t.count++
	if n := t.whole.Budget.Evaluations; n > 0 {
		p.Budget.Evaluations = min(max(rollout.LeastRound, int(share*float64(n))), n-t.spent)
		if p.Budget.Evaluations < rollout.LeastRound {
			return d, errOver
		}
	}
	if t.seconds > 0 {
		p.Budget.Seconds = min(share*t.seconds, t.whole.Budget.Seconds-(budget.Now(t.whole)-t.start))
		if p.Budget.Seconds <= 0 {
			return d, errOver
		}
	}
	if t.ctx.Err() != nil {
		return d, errOver
	}
	p.Report = t.report(&p)
	o, err := method.Place(t.ctx, &p)
	if t.ctx.Err() != nil || errors.Is(err, rollout.ErrNothingSampled) {
		err = nil
	}
	if o == nil {
		return d, cmp.Or(err, errOver)
	}
	t.spent += o.Evaluations
	t.notes = append(t.notes, o.Notes...)
	x := p.Complete(o.Decision)
	if t.best.Device == nil || o.Score.Better(t.score) {
		t.best, t.score = x, o.Score
	}
	return x, err
}

// report returns what tells of step p as of a part of the whole: what is no better
// than the best of all steps is not told.
func (t *alternation) report(p *plan.Problem) func(plan.Progress) {
	whole, spent, best, first := t.whole.Report, t.spent, t.score, t.best.Device == nil
	if whole == nil {
		return nil
	}
	return func(x plan.Progress) {
		x.Method = t.Name()
		x.Evaluations += spent
		t.Policy.spent = t.share()
		switch {
		case !first && !x.Best.Better(best):
			x.Best, x.Decision = best, plan.Decision{}
		case x.Device != nil:
			best, first = x.Best, false
			x.Decision = t.whole.Decided(p.Complete(x.Decision))
		}
		whole(x)
	}
}

// share is the part of the budget that is spent, with the earlier run's.
func (t *alternation) share() float64 {
	x := budget.Spent(t.whole, t.start, float64(t.spent))
	return min(1, t.before+(1-t.before)*x)
}
