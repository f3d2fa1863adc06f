package bench

import (
	"context"
	"fmt"

	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/baselines/search/fusion"
	"placer/graph/fuse"
	"placer/internal/compare"
	"placer/internal/report"
	"placer/placer/methods"
	"placer/placer/policy/cem"
	"placer/placer/problem"
	"placer/plan"
)

// annealingFactor is how many times the policy's budget annealing gets (GO gave
// it 24 hours where the policy took one to four).
const annealingFactor = 20

// goTrials runs the trials of an experiment of GO.
type goTrials struct {
	*Cases
	experiment GO
}

// Trials returns what runs the trials of m.
func (g GO) Trials(m *compare.Matrix, load Loader, clock func() float64) Trials {
	return &goTrials{Cases: NewCases(m, load, clock), experiment: g}
}

// attempt is one trial as it runs.
type attempt struct {
	ctx      context.Context
	task     *problem.Problem
	rules    *fuse.Rules
	budget   plan.Budget
	seed     uint64
	recorder *compare.Recorder
	clock    func() float64
	spent    int // evaluations
}

// Trial runs one cell. It is a compare.Do.
func (b *goTrials) Trial(ctx context.Context, cell compare.Cell) (t compare.Trial, err error) {
	e, err := b.open(cell.Case)
	if err != nil {
		return t, err
	}
	start := b.clock()
	a := &attempt{ctx: ctx, task: e.problem(e.placement), rules: e.fusion(), budget: b.m.Budget(), seed: cell.Seed, clock: func() float64 { return b.clock() - start }}
	a.recorder = &compare.Recorder{Clock: a.clock}
	d, kind, err := b.experiment.trial(a, cell.Method)
	if err != nil {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		return compare.Trial{Kind: kind, Seconds: a.clock(), Skipped: whySkipped(err, cell.Method)}, nil
	}
	if err := (&plan.Plan{Decision: d}).Check(a.task.Graph, a.task.Machine); err != nil {
		return t, fmt.Errorf("method %s broke its contract: %w", cell.Method, err)
	}
	s := a.task.Evaluator.Evaluate(d)
	// The proven bound is of the step without fusion: it says nothing here.
	t.Kind, t.StepTime, t.Overflow = kind, s.Value, int64(s.Overflow)
	t.Evaluations, t.Seconds, t.Improvements = max(a.spent, 1), a.clock(), a.recorder.Improvements()
	return t, nil
}

// table3 runs a method of GO's table 3.
func table3(a *attempt, method string) (d plan.Decision, k plan.Kind, err error) {
	if d.Device, err = a.placed(rules.Expert()); err != nil {
		return d, k, err
	}
	d.Priority = a.task.Priority
	switch method {
	case report.NoFusion:
		return d, plan.Baseline, nil
	case report.TFDefault:
		d.Fusion = fusion.Default(a.rules, d.Device)
		return d, plan.Baseline, nil
	case report.Annealed:
		d, err = a.decide(anneal.Placer{}, plan.Fuse, d, annealingFactor, 1)
		return d, plan.Search, err
	}
	d, err = a.learn(plan.Fuse, d, 1)
	return d, plan.Policy, err
}

// figure6 runs a method of GO's figure 6.
func figure6(a *attempt, method string) (d plan.Decision, k plan.Kind, err error) {
	if method == report.TFDefault {
		if d.Device, err = a.placed(rules.TensorFlowDefault()); err == nil {
			d.Fusion = fusion.Default(a.rules, d.Device)
		}
		return d, plan.Baseline, err
	}
	expert, err := a.placed(rules.Expert())
	if err != nil {
		return d, k, err
	}
	base := plan.Decision{Device: expert, Fusion: fusion.Default(a.rules, expert)}
	switch method {
	case report.Human:
		return base, plan.Baseline, nil
	case report.Separate:
		d, err = a.oneByOne(base)
		return d, plan.Policy, err
	}
	tasks, err := report.TasksOf(method)
	if err != nil {
		return d, k, err
	}
	d, err = a.learn(tasks, base, 1)
	return d, plan.Policy, err
}

// oneByOne has the policy learn each task in a third of the budget, with the others
// as in base.
func (a *attempt) oneByOne(base plan.Decision) (d plan.Decision, err error) {
	const parts = 3
	for _, t := range []plan.Tasks{plan.Place, plan.Schedule, plan.Fuse} {
		x, err := a.learn(t, base, parts)
		if err != nil {
			return d, err
		}
		switch t {
		case plan.Place:
			d.Device = x.Device
		case plan.Schedule:
			d.Priority = x.Priority
		case plan.Fuse:
			d.Fusion = x.Fusion
		}
	}
	return d, nil
}

// placed returns the placement of a rule.
func (a *attempt) placed(p plan.Placer) ([]uint8, error) {
	o, err := p.Place(a.ctx, a.problem())
	if err != nil {
		return nil, err
	}
	return o.Device, nil
}

func (a *attempt) problem() *plan.Problem {
	p := a.task.Problem
	p.Evaluator, p.Seed, p.Clock = a.task.Evaluator.Clone(), a.seed, a.clock
	return &p
}

// learn has a policy that knows nothing decide tasks, with the rest as in given,
// in one of parts of the budget. Placement is learnt by itself as it is with other
// tasks, and may start from the given one.
func (a *attempt) learn(tasks plan.Tasks, given plan.Decision, parts int) (plan.Decision, error) {
	if tasks == plan.Place {
		return a.decide(cem.Policy{Config: cem.Default()}, tasks, given, 1, parts)
	}
	m, err := methods.Find("GO-one")
	if err != nil {
		return plan.Decision{}, err
	}
	p, err := m.New(methods.Default())
	if err != nil {
		return plan.Decision{}, err
	}
	return a.decide(p, tasks, given, 1, parts)
}

// decide has method decide tasks, with the rest as in given, in factor/parts of
// the budget.
func (a *attempt) decide(method plan.Placer, tasks plan.Tasks, given plan.Decision, factor, parts int) (plan.Decision, error) {
	p := a.problem()
	p.Tasks, p.Decision, p.Budget = tasks, given, a.budget
	if n := p.Budget.Evaluations; n > 0 { // 0 does not bound
		p.Budget.Evaluations = max(1, n*factor/parts)
	}
	p.Budget.Seconds = p.Budget.Seconds * float64(factor) / float64(parts)
	before := a.spent
	p.Report = func(x plan.Progress) {
		if parts == 1 { // a part's step is not that of the whole
			x.Evaluations += before
			a.recorder.Observe(x)
		}
	}
	ctx, stop := within(a.ctx, a.clock, p.Budget.Seconds)
	defer stop()
	o, err := method.Place(ctx, p)
	if err != nil {
		return plan.Decision{}, err
	}
	a.spent += o.Evaluations
	d := o.Decision
	if d.Priority == nil {
		d.Priority = given.Priority
	}
	if d.Fusion == nil {
		d.Fusion = given.Fusion
	}
	return d, nil
}
