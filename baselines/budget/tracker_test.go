package budget_test

import (
	"context"
	"slices"
	"testing"

	"placer/baselines/budget"
	"placer/baselines/conformance"
	"placer/plan"
)

func problem(t *testing.T, k int) *plan.Problem {
	t.Helper()
	p, err := conformance.Cases()[k].Problem()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeepsTheBest(t *testing.T) {
	p := problem(t, 3)
	var told []plan.Progress
	p.Report = func(r plan.Progress) { told = append(told, r) }
	tracker := budget.New(context.Background(), p, "m")
	device := make([]uint8, p.Graph.NumOps())
	best := tracker.Try(device)
	kept := slices.Clone(device)
	for k := range 40 {
		device[k%len(device)] = uint8((k + 1) % p.Machine.NumDevices()) // the tracker must not keep this slice
		if s := tracker.Try(device); s.Better(best) {
			best, kept = s, slices.Clone(device)
		}
	}
	out, err := tracker.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	if out.Score != best || !slices.Equal(out.Device, kept) || out.Evaluations != 41 {
		t.Errorf("outcome %v after %d, want %v after 41", out.Score, out.Evaluations, best)
	}
	if len(told) < 3 || told[0].Device == nil {
		t.Errorf("progress %v", told)
	}
}

func TestNoticesTheEnd(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	now := 0.0
	for _, c := range []struct {
		name   string
		ctx    context.Context
		budget plan.Budget
		tries  int
	}{
		{"evaluations", context.Background(), plan.Budget{Evaluations: 3}, 3},
		{"seconds", context.Background(), plan.Budget{Seconds: 2.5}, 3},
		{"both", context.Background(), plan.Budget{Evaluations: 2, Seconds: 2.5}, 2},
		{"context", ended, plan.Budget{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := problem(t, 2)
			now = 0
			p.Clock = func() float64 { return now }
			p.Budget = c.budget
			tracker := budget.New(c.ctx, p, "m")
			n := 0
			for ; !tracker.Done() && n < 100; n++ {
				tracker.Try(make([]uint8, p.Graph.NumOps()))
				now++
			}
			if n != c.tries {
				t.Errorf("done after %d, want %d", n, c.tries)
			}
		})
	}
	p := problem(t, 2)
	if _, err := budget.New(ended, p, "m").Outcome(); err == nil {
		t.Error("an outcome without a candidate")
	}
}

// Where neither evaluations nor seconds on a clock bound a problem, the default does.
func TestOrDefault(t *testing.T) {
	p := problem(t, 2)
	p.Budget = plan.Budget{Seconds: 1}
	if q := budget.OrDefault(p); q == p || q.Budget.Evaluations != budget.DefaultEvaluations {
		t.Errorf("without a clock the budget is %+v", q.Budget)
	}
	p.Clock = func() float64 { return 3 }
	if budget.OrDefault(p) != p {
		t.Error("a budget in seconds was changed")
	}
	p.Budget.Evaluations = 10
	if got := budget.Spent(p, 2.75, 5); got != 0.5 {
		t.Errorf("%v of the budget is spent, want 0.5", got)
	}
	if got := budget.Spent(p, 2.25, 5); got != 0.75 {
		t.Errorf("%v of the budget is spent, want 0.75", got)
	}
	if got := budget.Spent(p, -3, 5); got != 6 {
		t.Errorf("%v of the budget is spent, want 6", got)
	}
}
