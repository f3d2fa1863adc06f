package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"placer/baselines/anneal"
	"placer/baselines/fusion"
	"placer/baselines/human"
	"placer/baselines/tfdefault"
	"placer/compare"
	"placer/graph/fuse"
	"placer/placer"
	"placer/plan"
	"placer/report"
)

// annealingFactor is how many times the policy's budget annealing gets (GO gave
// it 24 hours where the policy took one to four).
const annealingFactor = 20

// bencher runs the trials of an experiment of GO.
type bencher struct {
	cases *cases
	c     *console
	m     *compare.Matrix
	mu    sync.Mutex
	rules map[string]*fuse.Rules // by case
}

// attempt is one trial as it runs.
type attempt struct {
	b         *bencher
	ctx       context.Context
	task      *placer.Task
	rules     *fuse.Rules
	evaluator plan.Evaluator
	seed      uint64
	recorder  *compare.Recorder
	clock     func() float64
	spent     int // evaluations
}

// trial runs one cell. It is a compare.Do.
func (b *bencher) trial(ctx context.Context, g goBench, cell compare.Cell) (t compare.Trial, err error) {
	e := b.cases.load(cell.Case)
	if e.err != nil {
		return t, e.err
	}
	start := b.c.clock()
	a := &attempt{b: b, ctx: ctx, task: e.task, seed: cell.Seed, clock: func() float64 { return b.c.clock() - start }}
	a.recorder = &compare.Recorder{Clock: a.clock}
	e.mu.Lock()
	a.evaluator = e.task.Evaluator.Clone()
	e.mu.Unlock()
	b.mu.Lock()
	if b.rules == nil {
		b.rules = map[string]*fuse.Rules{}
	}
	if b.rules[cell.Case] == nil {
		b.rules[cell.Case] = fuse.NewRules(e.task.Graph)
	}
	a.rules = b.rules[cell.Case]
	b.mu.Unlock()
	d, kind, err := g.trial(a, cell.Method)
	if err != nil {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		return t, err
	}
	check := plan.Plan{Device: d.Device, Priority: d.Priority, Fusion: d.Fusion}
	if err := check.Check(a.task.Graph, a.task.Machine); err != nil {
		return t, fmt.Errorf("method %s broke its contract: %w", cell.Method, err)
	}
	s := a.evaluator.EvaluateFused(d.Device, d.Priority, d.Fusion)
	// The proven bound is of the step without fusion: it says nothing here.
	t.Kind, t.StepTime, t.Overflow = kind, s.Seconds, int64(s.Overflow)
	t.Evaluations, t.Seconds, t.Improvements = max(a.spent, 1), a.clock(), a.recorder.Improvements()
	return t, nil
}

// table3 runs a method of GO's table 3.
func table3(a *attempt, method string) (d plan.Plan, k plan.Kind, err error) {
	if d.Device, err = a.placed(human.Placer{}); err != nil {
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
func figure6(a *attempt, method string) (d plan.Plan, k plan.Kind, err error) {
	if method == report.TFDefault {
		if d.Device, err = a.placed(tfdefault.Placer{}); err == nil {
			d.Fusion = fusion.Default(a.rules, d.Device)
		}
		return d, plan.Baseline, err
	}
	expert, err := a.placed(human.Placer{})
	if err != nil {
		return d, k, err
	}
	base := plan.Plan{Device: expert, Fusion: fusion.Default(a.rules, expert)}
	if method == report.Human {
		return base, plan.Baseline, nil
	}
	if method == report.Separate {
		const parts = 3
		for _, t := range []plan.Tasks{plan.Place, plan.Schedule, plan.Fuse} {
			x, err := a.learn(t, base, parts)
			if err != nil {
				return d, k, err
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
		return d, plan.Policy, nil
	}
	tasks, err := report.TasksOf(method)
	if err != nil {
		return d, k, err
	}
	d, err = a.learn(tasks, base, 1)
	return d, plan.Policy, err
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
	return &plan.Problem{
		Graph: a.task.Graph, Machine: a.task.Machine, Units: a.task.Units, Priority: a.task.Priority,
		Evaluator: a.evaluator.Clone(), Seed: a.seed, Clock: a.clock,
	}
}

// learn has a policy that knows nothing decide tasks, with the rest as in given,
// in one of parts of the budget. Placement may start from the given one, and is
// learnt by itself as it is with other tasks.
func (a *attempt) learn(tasks plan.Tasks, given plan.Plan, parts int) (plan.Plan, error) {
	c := placer.DefaultPolicy()
	c.Imitation = c.Joint.Imitation
	p, err := placer.NewPolicy(c)
	if err != nil {
		return plan.Plan{}, err
	}
	return a.decide(p, tasks, given, 1, parts)
}

// decide has method decide tasks, with the rest as in given, in factor/parts of
// the budget.
func (a *attempt) decide(method plan.Placer, tasks plan.Tasks, given plan.Plan, factor, parts int) (plan.Plan, error) {
	p := a.problem()
	p.Tasks, p.Device, p.Priority, p.Fusion = tasks, given.Device, given.Priority, given.Fusion
	p.Budget = a.b.m.Budget()
	p.Budget.Evaluations = p.Budget.Evaluations * factor / parts
	p.Budget.Seconds = p.Budget.Seconds * float64(factor) / float64(parts)
	before := a.spent
	p.Report = func(x plan.Progress) {
		if parts == 1 { // a part's step is not that of the whole
			x.Evaluations += before
			a.recorder.Observe(x)
		}
	}
	ctx := a.ctx
	if p.Budget.Seconds > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(p.Budget.Seconds*float64(time.Second)))
		defer stop()
	}
	o, err := method.Place(ctx, p)
	if err != nil {
		return plan.Plan{}, err
	}
	a.spent += o.Evaluations
	d := plan.Plan{Device: o.Device, Priority: o.Priority, Fusion: o.Fusion}
	if d.Priority == nil {
		d.Priority = given.Priority
	}
	if d.Fusion == nil {
		d.Fusion = given.Fusion
	}
	return d, nil
}
