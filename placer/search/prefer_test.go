package search

import (
	"slices"
	"testing"

	"placer/plan"
)

// TestPrefer: the decision that is preferred is the best row, judged and described as every
// row is; a method that has no row changes nothing.
func TestPrefer(t *testing.T) {
	p := testProblem(t)
	found := search(t, t.Context(), testMethods(nil), testConfig(plan.Budget{Evaluations: 80}, 1), nil, nil)
	worse := plan.Decision{Device: make([]uint8, p.Graph.NumOps())}
	for i := range worse.Device {
		worse.Device[i] = uint8(p.Machine.NumDevices() - 1)
	}
	if found.Prefer(p, "c", worse, "none") {
		t.Error("a method without a row is preferred")
	}
	if !found.Prefer(p, "b", worse, "tried elsewhere") {
		t.Fatal("no row of b")
	}
	r := found.Rows[found.Best]
	if r.Method != "b" || !slices.Equal(r.Device, worse.Device) || r.Score != p.Evaluator.Evaluate(worse.Or(plan.Decision{Priority: p.Priority})) || r.Notes[len(r.Notes)-1] != "tried elsewhere" {
		t.Errorf("the best row is %+v", r)
	}
}
