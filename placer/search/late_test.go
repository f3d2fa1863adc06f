package search

import (
	"context"
	"testing"

	"placer/plan"
)

// Where nothing fits, late rules have a second more than the budget, or than loading took;
// the first runs in any case.
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
			takes := map[string]float64{"first": x.first, "second": 1, "third": 1}
			var methods []Method
			for _, name := range []string{"first", "second", "third"} {
				methods = append(methods, Method{Name: name, Kind: plan.Baseline, New: func(Start) (plan.Placer, error) {
					return together{&counting{name: name, kind: plan.Baseline, at: 1, then: func() { c.now += takes[name] }}}, nil
				}})
			}
			p := testProblem(t)
			p.JudgeBy(tooLarge{p.Evaluator})
			r, err := Search(context.Background(), p, methods, testConfig(plan.Budget{Seconds: 5}, 1), Host{Clock: c.read, CPU: c.read})
			if err != nil {
				t.Fatal(err)
			}
			if r.Row("first") == nil || r.Row("second") == nil || r.Row("third") != nil {
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
