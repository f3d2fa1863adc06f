package problem_test

import (
	"strings"
	"testing"

	"placer/placer/problem"
	"placer/plan"
)

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, gpu string
		gpus      int
		want      string
	}{
		{"rnnlmx", "p100", 2, "rnnlmx"},
		{"rnnlm2", "p101", 2, "p101"},
		{"rnnlm2", "p100", 99, "99"},
	} {
		p, err := problem.Workload(c.name, c.gpu, c.gpus, problem.Options{})
		if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %d %s: error %v, want %q", c.name, c.gpus, c.gpu, err, c.want)
		}
	}
}

// TestBoundSeconds: less time makes the bound of the largest load no higher, and never none.
func TestBoundSeconds(t *testing.T) {
	bound := func(seconds float64) float64 {
		p, err := problem.Workload("rnnlm2", "p100", 2, problem.Options{Objective: plan.Throughput, BoundSeconds: seconds})
		if err != nil {
			t.Fatal(err)
		}
		return p.Bound
	}
	whole, second, none := bound(0), bound(60), bound(1e-9)
	if whole != second || !(none > 0) || none > whole {
		t.Errorf("bounds %v, in a minute %v, in no time %v", whole, second, none)
	}
}
