package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"placer/internal/compare"
	"placer/workloads"
)

// A comparison goes on with the graph that it began with and no other.
func TestResumedComparisonOfAnotherGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	file := func(unroll string) {
		g, err := workloads.Build("rnnlm:layers=1,unroll=" + unroll)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := g.Write(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("g.json", text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	resume := []string{"compare", "--resume", "c", "-q", "--workers", "1", "--csv"}
	file("2")
	command(t, []string{"compare", "--graph", "g.json", "--gpus", "2", "--methods", "human,single", "--seeds", "1", "--evaluations", "1", "--out", "c", "-q", "--workers", "1"})
	whole := command(t, resume)
	trials := read(t, "c", compare.TrialsFile)
	if err := os.WriteFile("c/"+compare.TrialsFile, trials[:bytes.IndexByte(trials, '\n')+1], 0o644); err != nil {
		t.Fatal(err)
	}
	file("3")
	if got := command(t, resume); !strings.Contains(got, "single on g.json on p100x2, seed 1: another graph than when the comparison in c began: restore") || !strings.HasSuffix(got, "exit 1\n") {
		t.Error(got)
	}
	file("2")
	if got := command(t, resume); strings.Count(got, "\n") != strings.Count(whole, "\n") || strings.Contains(got, "exit") {
		t.Errorf("%s\nwant %s", got, whole)
	}
}

// What an experiment of GO left behind goes on with the command that began it, and a method
// that there is not is named before a trial runs.
func TestResumedByTheWrongCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	command(t, []string{"bench", "go-table3", "--workload", "trfxl2", "--evaluations", "3", "--seeds", "1", "--out", "go", "-q"})
	before := read(t, "go", compare.TrialsFile)
	if got := command(t, []string{"compare", "--resume", "go", "-q"}); got != "! placer: go is a folder of bench go-table3, which goes on with it: placer bench go-table3 --evaluations 3 --seeds 1 --out go\nexit 2\n" {
		t.Error(got)
	}
	if !bytes.Equal(read(t, "go", compare.TrialsFile), before) {
		t.Error("the folder was changed")
	}
	command(t, []string{"compare", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--methods", "human,single", "--seeds", "1", "--evaluations", "1", "--out", "c", "-q", "--workers", "1"})
	matrix := bytes.Replace(read(t, "c", compare.MatrixFile), []byte(`"single"`), []byte(`"solitary"`), 1)
	if err := errors.Join(os.WriteFile("c/"+compare.MatrixFile, matrix, 0o600), os.WriteFile("c/"+compare.TrialsFile, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := command(t, []string{"compare", "--resume", "c", "-q"}); !strings.HasPrefix(got, `! placer: c/matrix.json: unknown method "solitary", want some of `) || !strings.HasSuffix(got, "exit 1\n") {
		t.Error(got)
	}
	if left := read(t, "c", compare.TrialsFile); len(left) > 0 {
		t.Errorf("trials ran: %s", left)
	}
}

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
