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

// Where nothing fits, late rules have a second more than the budget, or than loading took;
// the first runs in any case, slow ones do not.
func TestLateRulesHaveAnEnd(t *testing.T) {
	for _, x := range []struct {
		name         string
		began, first float64 // seconds of loading, and of the first rule
	}{
		{"the first rule takes it all", 0, 5.2},
		{"loading takes it all", 500, 0.2},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := &clock{now: x.began}
			takes := map[string]float64{"first": x.first, "second": 1, "third": 1, "slow": 1}
			var methods []Method
			for _, name := range []string{"slow", "first", "second", "third"} {
				methods = append(methods, Method{Name: name, Kind: plan.Baseline, Slow: name == "slow", New: func(Start) (plan.Placer, error) {
					return together{&counting{name: name, kind: plan.Baseline, at: 1, then: func() { c.now += takes[name] }}}, nil
				}})
			}
			p := testProblem(t)
			p.JudgeBy(tooLarge{p.Evaluator})
			r, err := Search(context.Background(), p, methods, testConfig(plan.Budget{Seconds: 5}, 1), Host{Clock: c.read, CPU: c.read})
			if err != nil {
				t.Fatal(err)
			}
			if r.Row("first") == nil || r.Row("second") == nil || r.Row("third") != nil || r.Row("slow") != nil {
				t.Errorf("rows %+v, want the first and the second", r.Rows)
			}
		})
	}
}

// tooLarge lets nothing fit.
type tooLarge struct{ plan.Evaluator }

func (e tooLarge) Evaluate(d plan.Decision) plan.Score {
	s := e.Evaluator.Evaluate(d)
	s.Overflow = 1
	return s
}

func (e tooLarge) Clone() plan.Evaluator { return tooLarge{e.Evaluator.Clone()} }
