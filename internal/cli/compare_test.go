package cli

import (
	"encoding/json"
	"testing"

	"placer/internal/compare"
)

// The method "search" of a comparison is what search does where nothing else is
// asked for: all tasks, the same step and the same bound.
func TestCompareSearches(t *testing.T) {
	t.Chdir(t.TempDir())
	graph := []string{"--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--evaluations", "120", "-q"}
	command(t, append([]string{"search", "--workers", "1", "--out", "run"}, graph...))
	command(t, append([]string{"compare", "--methods", "human,search", "--seeds", "1", "--workers", "1", "--out", "all"}, graph...))
	var c compare.Comparison
	if err := json.Unmarshal(read(t, "all", compare.ResultFile), &c); err != nil {
		t.Fatal(err)
	}
	want := result(t, "run")
	if got := c.Trials[1]; got.Method != "search" || got.StepTime != want.Best.StepTime || got.LowerBound != want.LowerBound || want.Tasks != "place,schedule,fuse" {
		t.Errorf("search: %v with bound %v deciding on %s; compared: %+v", want.Best.StepTime, want.LowerBound, want.Tasks, got)
	}
	if got := c.Trials[0]; got.LowerBound != want.UnfusedBound {
		t.Errorf("human: bound %v, want that of steps without fusion, %v", got.LowerBound, want.UnfusedBound)
	}
}
