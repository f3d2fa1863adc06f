// Package problemtest owns the placement problems that tests of the policies share.
package problemtest

import (
	"testing"

	"placer/placer/problem"
	"placer/plan"
)

// OnP100s returns the problem of a workload on devices P100s, of which tasks are to be
// decided, with seed 3. Where the placement is none of them, it is blocks of equal time.
func OnP100s(t testing.TB, workload string, devices int, tasks plan.Tasks) *plan.Problem {
	t.Helper()
	p, err := problem.Workload(workload, "p100", devices, problem.Options{Tasks: plan.AllTasks})
	if err != nil {
		t.Fatal(err)
	}
	p.Tasks, p.Seed = tasks, 3
	if !tasks.Has(plan.Place) {
		p.Device = p.Units.Blocks(p.Evaluator.OpSeconds(0), devices)
	}
	return &p.Problem
}
