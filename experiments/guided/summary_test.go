package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/plan"
)

// TestRecorded: the recorded tables are what the recorded runs give.
func TestRecorded(t *testing.T) {
	for _, folder := range []string{".", "all-tasks/portfolio"} {
		runs, err := read(filepath.Join(folder, "runs.tsv"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(folder, "table.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(runs); got != string(want) {
			t.Errorf("%s/table.md is not what runs.tsv gives:\n%s", folder, got)
		}
	}
}

// TestSeedsOfBoth: medians are over the seeds that both ways have, and what does not fit is in
// no mean.
func TestSeedsOfBoth(t *testing.T) {
	runs := []run{
		{graph: "a", budget: 1, seed: 1, how: chance, step: 80, human: 100}, {graph: "a", budget: 1, seed: 1, how: guided, step: 60, human: 100},
		{graph: "a", budget: 1, seed: 2, how: chance, step: 20, human: 100}, {graph: "a", budget: 1, seed: 3, how: chance, step: 10, human: 100},
		{graph: "b", budget: 1, seed: 1, how: chance, step: math.Inf(1), human: 100}, {graph: "b", budget: 1, seed: 1, how: guided, step: 50, human: 100},
		{graph: "c", budget: 1, seed: 1, how: chance, step: 50, human: 100},
	}
	got := summary(runs)
	for _, want := range []string{"| a | 20.0% | 40.0% | 25.0% | 1 |", "| b | no plan | 50.0% | - | 1 |", "| c | - | - | - | 0 |", "| geometric mean | 20.0% | 40.0% | 25.0% | 1 rows |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// TestNoPlanIsKept: a search that found none is a line that is read again.
func TestNoPlanIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.tsv")
	r := run{graph: "a", budget: 1, seed: 2, how: chance, step: seconds(plan.Score{Value: 3, Overflow: 1}), human: 4, evaluations: 5, spent: 1}
	if err := os.WriteFile(path, []byte(r.line()), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := read(path); err != nil || !slices.Equal(got, []run{r}) || !math.IsInf(r.step, 1) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
}

// TestArguments: what is no way of searching and no graph is an error.
func TestArguments(t *testing.T) {
	t.Chdir("../..")
	for _, e := range []experiment{{search: "annealling"}, {search: annealing, rows: "rnnlm2,nosuch"}} {
		if err := e.check(nil); err == nil {
			t.Errorf("%+v passed", e)
		}
	}
	e := experiment{search: portfolio, rows: "rnnlm2,drawn1", drawn: 2}
	if err := e.check(nil); err != nil {
		t.Error(err)
	}
	if err := e.check([]string{"rnnlm2"}); err == nil {
		t.Error("an argument behind the flags passed")
	}
}
