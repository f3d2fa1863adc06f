package check_test

import (
	"context"
	"testing"

	"placer/placer/check"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
)

// TestNoFalseAlarm: on the graphs and machines of table 2, the human expert's placement
// and those of list schedulers have no error where they fit, and every warning is
// justified: its change was simulated and helps, or the device is idle.
func TestNoFalseAlarm(t *testing.T) {
	for _, c := range table2() {
		p, err := problem.Workload(c.workload, "p100", c.gpus, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.methods {
			m, err := methods.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			placer, err := m.New(methods.Default())
			if err != nil {
				t.Fatal(err)
			}
			out, err := placer.Place(context.Background(), &p.Problem)
			if err != nil {
				t.Fatal(err)
			}
			r, err := check.Check(t.Context(), &check.Case{Source: problem.Source{Graph: p.Graph}, Machine: p.Machine,
				Placement: &check.Placement{Decision: out.Decision.Or(plan.Decision{Priority: p.Priority})}})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				switch {
				case f.Severity == check.Error && out.Score.Feasible():
					t.Errorf("%s by %s: %+v", c.workload, name, f)
				case f.Severity == check.Warning && f.Rule != check.IdleDevice && !(f.Tried && f.Gain > 0 && f.Fix != ""):
					t.Errorf("%s by %s: nothing justifies %+v", c.workload, name, f)
				}
			}
			if float64(r.Step) != out.Score.Value {
				t.Errorf("%s by %s: a step of %v, want %g s", c.workload, name, r.Step, out.Score.Value)
			}
		}
	}
}

// row is a row of table 2 with the methods whose placements are checked.
type row struct {
	workload string
	gpus     int
	methods  []string
}
