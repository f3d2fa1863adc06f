package conformance

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"placer/baselines/budget"
	"placer/plan"
	"placer/sim"
)

// Method is a method under test.
type Method struct {
	Name string
	New  func() (plan.Placer, error)
	// Reaches says that the method finds the optimum of the tiny problems, under the
	// problem's scheduler, within Evaluations and 5,000 at least.
	Reaches bool
	// Optimal says that it finds the optimum of all priorities, too.
	Optimal bool
	// Fits says that the method respects memory: where one device cannot hold the
	// graph, but all together easily can, its placement fits.
	Fits bool
	// Evaluations is the budget of a run; 0 means 200.
	Evaluations int
	// Batch is the most evaluations the method may make after its context has
	// ended; 0 means 8.
	Batch int
	// Refuses says that the method may answer a problem that nothing fits with an
	// error.
	Refuses bool
}

// Run runs every test on m; with -short, one case and no search for optima.
func Run(t *testing.T, m Method) {
	if m.Evaluations == 0 {
		m.Evaluations = 200
	}
	if m.Batch == 0 {
		m.Batch = 8
	}
	cases, tiny := Cases(), Tiny()
	if testing.Short() {
		cases, tiny = cases[:1], nil
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { m.contract(t, &c, plan.Place) })
		t.Run(c.Name+", all tasks", func(t *testing.T) { m.contract(t, &c, plan.AllTasks) })
	}
	for _, c := range tiny {
		t.Run(c.Name, func(t *testing.T) { m.optimum(t, &c) })
	}
	t.Run("cancel", m.cancel)
	t.Run("cancelled before", m.cancelledBefore)
}

func (m *Method) place(t *testing.T, ctx context.Context, c *Case, change func(*plan.Problem)) (*plan.Outcome, *plan.Problem, error) {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Budget.Evaluations = m.Evaluations
	if change != nil {
		change(p)
	}
	placer, err := m.New()
	if err != nil {
		t.Fatal(err)
	}
	if placer.Name() != m.Name {
		t.Fatalf("Name is %q, want %q", placer.Name(), m.Name)
	}
	out, err := placer.Place(ctx, p)
	if missing := budget.Unavailable(""); errors.As(err, &missing) {
		t.Skip(err)
	}
	return out, p, err
}

// contract checks one run on a problem of some tasks: a valid plan that decides on no others,
// its true score, evaluations that were counted and within the budget, progress that only
// improves and has true scores too, and the same plan when run again, where evaluations of
// changes are to be had.
func (m *Method) contract(t *testing.T, c *Case, tasks plan.Tasks) {
	var seen []plan.Progress
	var count *counter
	out, p, err := m.place(t, context.Background(), c, func(p *plan.Problem) {
		count = &counter{Evaluator: p.Evaluator, n: new(atomic.Int64)}
		p.Evaluator = count
		p.Tasks = tasks
		p.Report = func(r plan.Progress) {
			r.Decision = r.Decision.Clone()
			seen = append(seen, r)
		}
	})
	if err != nil {
		if m.Refuses && c.Impossible {
			return
		}
		t.Fatal(err)
	}
	if err := (&plan.Plan{Decision: p.Complete(out.Decision)}).Check(c.Graph, c.Machine); err != nil {
		t.Fatal(err)
	}
	if !tasks.Has(plan.Fuse) && out.Fusion != nil {
		t.Error("fuses ops, which is not asked for")
	}
	if s := p.Evaluator.Evaluate(p.Complete(out.Decision)); s != out.Score {
		t.Errorf("score is %v, its plan's is %v", out.Score, s)
	}
	if m.Fits && c.Spread && !out.Score.Feasible() {
		t.Errorf("the placement lacks %v", out.Score.Overflow)
	}
	if n := int(count.n.Load()) - 1; out.Evaluations != n {
		t.Errorf("claims %d evaluations, made %d", out.Evaluations, n)
	}
	if out.Evaluations > m.Evaluations {
		t.Errorf("%d evaluations exceed the budget of %d", out.Evaluations, m.Evaluations)
	}
	for k, r := range seen {
		if r.Method != m.Name {
			t.Errorf("progress of %q, want %q", r.Method, m.Name)
		}
		if k > 0 && (seen[k-1].Best.Better(r.Best) || r.Evaluations < seen[k-1].Evaluations) {
			t.Errorf("progress goes back from %+v to %+v", seen[k-1], r)
		}
		if r.Device != nil && p.Evaluator.Evaluate(p.Complete(r.Decision)) != r.Best {
			t.Errorf("progress %d reports a score that is not its plan's", k)
		}
	}
	again, _, err := m.place(t, context.Background(), c, func(p *plan.Problem) {
		p.Tasks = tasks
		p.Moves = p.Evaluator.(*sim.Simulator).Moves // which scores the same
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Device, out.Device) || !slices.Equal(again.Priority, out.Priority) || !slices.Equal(again.Fusion, out.Fusion) || again.Evaluations != out.Evaluations {
		t.Error("the same problem and seed gave another plan")
	}
}

// optimum compares with exhaustive search, under the problem's scheduler and under
// all priorities.
func (m *Method) optimum(t *testing.T, c *Case) {
	out, p, err := m.place(t, context.Background(), c, func(p *plan.Problem) {
		if m.Reaches || m.Optimal {
			p.Budget.Evaluations = max(p.Budget.Evaluations, 5000)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Score.Feasible() && out.Score.Value < c.Optimum*(1-1e-9) {
		t.Errorf("%g s is better than the optimum %g s of all priorities", out.Score.Value, c.Optimum)
	}
	if m.Optimal && !(out.Score.Feasible() && out.Score.Value <= c.Optimum*(1+1e-9)) {
		t.Errorf("score %v, the optimum of all priorities is %g s", out.Score, c.Optimum)
	}
	best := exhaustive(p)
	if out.Priority == nil && out.Score.Better(best) {
		t.Errorf("score %v is better than the optimum %v", out.Score, best)
	}
	if m.Reaches && best.Better(out.Score) {
		t.Errorf("score %v, the optimum is %v", out.Score, best)
	}
}

// cancel ends the context during a run that nothing else would end soon.
func (m *Method) cancel(t *testing.T) {
	c := Cases()[3]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var count *counter
	const at = 5
	out, p, err := m.place(t, ctx, &c, func(p *plan.Problem) {
		count = &counter{Evaluator: p.Evaluator, n: new(atomic.Int64), at: at, do: cancel}
		p.Evaluator = count
		p.Budget.Evaluations = 1 << 30
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := count.n.Load(); n > at+int64(m.Batch) {
		t.Errorf("%d evaluations after the context ended, want at most %d", n-at, m.Batch)
	}
	if err := (&plan.Plan{Decision: plan.Decision{Device: out.Device, Priority: out.Priority}}).Check(c.Graph, c.Machine); err != nil {
		t.Error(err)
	}
	if out.Priority == nil {
		out.Priority = p.Priority
	}
	if s := p.Evaluator.Evaluate(plan.Decision{Device: out.Device, Priority: out.Priority}); s != out.Score {
		t.Errorf("score is %v, its plan's is %v", out.Score, s)
	}
}

// cancelledBefore runs under a context that has ended: an answer after a moment's
// work or an error, and no more.
func (m *Method) cancelledBefore(t *testing.T) {
	c := Cases()[3]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var count *counter
	out, _, err := m.place(t, ctx, &c, func(p *plan.Problem) {
		count = &counter{Evaluator: p.Evaluator, n: new(atomic.Int64)}
		p.Evaluator = count
		p.Budget.Evaluations = 1 << 30
	})
	if (out == nil) == (err == nil) {
		t.Errorf("outcome %v and error %v, want one of them", out, err)
	}
	if n := count.n.Load(); n > int64(m.Batch) {
		t.Errorf("%d evaluations under an ended context, want at most %d", n, m.Batch)
	}
}

// counter counts the evaluations of an evaluator and its clones, and calls do at
// the evaluation at.
type counter struct {
	plan.Evaluator
	n  *atomic.Int64
	at int64
	do func()
}

func (c *counter) Evaluate(d plan.Decision) plan.Score {
	if c.n.Add(1) == c.at && c.do != nil {
		c.do()
	}
	return c.Evaluator.Evaluate(d)
}

func (c *counter) Clone() plan.Evaluator {
	return &counter{Evaluator: c.Evaluator.Clone(), n: c.n, at: c.at, do: c.do}
}
