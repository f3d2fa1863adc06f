package problem_test

import (
	"testing"

	"placer/placer/problem"
	"placer/plan"
)

func TestDefaultTasks(t *testing.T) {
	for _, c := range []struct {
		o    problem.Options
		want plan.Tasks
	}{
		{problem.Options{}, plan.AllTasks},
		{problem.Options{Contention: "fair-share"}, plan.AllTasks},
		{problem.Options{Contention: "none"}, plan.Place},
		{problem.Options{Objective: plan.Memory}, plan.Place},
	} {
		if got := c.o.DefaultTasks(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
}
