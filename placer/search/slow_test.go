package search

import (
	"context"
	"slices"
	"testing"

	"placer/plan"
)

// Slow baselines come after the others, within the first tenth of a budget in seconds; a
// budget in evaluations knows no such thing. Rows stay in
// the order of the methods.
func TestSlowBaselinesComeLast(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget plan.Budget
		want   []string // began
	}{
		{"time enough", plan.Budget{Seconds: 5}, []string{"human", "slow", "a", "b", "policy", "last"}},
		{"evaluations", plan.Budget{Evaluations: 100}, []string{"slow", "human", "a", "b", "policy", "last"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seconds float64
			slow := Method{Name: "slow", Kind: plan.Baseline, Slow: true, New: func(Start) (plan.Placer, error) { return together{&counting{name: "slow", kind: plan.Baseline}}, nil }}
			methods := slices.DeleteFunc(append([]Method{slow}, testMethods(nil)...), func(m Method) bool { return m.Name == "absent" })
			var began []string
			r := search(t, context.Background(), methods, testConfig(c.budget, 1), func(e Event) error {
				if e.What == Started {
					began = append(began, e.Method)
					if e.Method == "slow" {
						seconds = e.Budget.Seconds
					}
				}
				return nil
			}, nil)
			if !slices.Equal(began, c.want) {
				t.Errorf("%v began, want %v", began, c.want)
			}
			if seconds > c.budget.Seconds/10 {
				t.Errorf("the slow one has %g s of %g", seconds, c.budget.Seconds)
			}
			if r.Row("slow") != nil && r.Rows[0].Method != "slow" {
				t.Errorf("the first row is %s", r.Rows[0].Method)
			}
		})
	}
}
