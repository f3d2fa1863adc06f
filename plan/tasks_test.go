package plan_test

import (
	"testing"

	"placer/plan"
)

func TestTasks(t *testing.T) {
	for k := plan.Place; k <= plan.AllTasks; k++ {
		got, err := plan.ParseTasks(k.String())
		if err != nil || got != k {
			t.Errorf("%d prints as %q, which reads as %d, %v", k, k, got, err)
		}
	}
	for s, want := range map[string]plan.Tasks{"fuse,place": plan.Place | plan.Fuse, "schedule": plan.Schedule, "": 0, "place,place": 0, "place,": 0, "order": 0} {
		got, err := plan.ParseTasks(s)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q reads as %v, %v; want %v", s, got, err, want)
		}
	}
	if !(&plan.Problem{}).Decides(plan.Place) || (&plan.Problem{}).Decides(plan.Fuse) || (&plan.Problem{Tasks: plan.Fuse}).Decides(plan.Place) {
		t.Error("a problem that names no task does not mean placement")
	}
}
