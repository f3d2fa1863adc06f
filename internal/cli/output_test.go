package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallGraph = "rnnlm:layers=1,unroll=2"

// A file that cannot be written is told before the work whose result it is for.
func TestOutputIsAskedForFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	nowhere := filepath.Join("none", "out.json")
	for _, args := range [][]string{
		{"search", "--workload", smallGraph, "--gpus", "2", "--budget", "1h", "--out", "run", "-o", nowhere},
		{"place", "--workload", smallGraph, "--gpus", "2", "-o", nowhere},
		{"finetune", "--workload", smallGraph, "--gpus", "2", "-o", nowhere},
		{"import", "--workload", smallGraph, "-o", nowhere},
	} {
		got := command(t, args)
		if !strings.HasPrefix(got, "! placer: "+nowhere+" cannot be written: ") || !strings.HasSuffix(got, "exit 1\n") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// place and finetune print the plan for -o -, as search does.
func TestPlanOnStdout(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"place"}, {"finetune", "-q", "--steps", "1", "--samples", "4"}} {
		got := command(t, append(args, "--workload", smallGraph, "--gpus", "2", "-o", "-"))
		if !strings.HasPrefix(got, `{"format": "placer plan 1",`) || strings.Contains(got, "reduction") || strings.Contains(got, "exit") {
			t.Errorf("%v: %.200s", args, got)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A graph that no device has room for ends place with a line that says so.
func TestPlaceThatDoesNotFit(t *testing.T) {
	t.Chdir(t.TempDir())
	got := command(t, []string{"place", "--workload", "rnnlm8", "--gpus", "1", "--samples", "1"})
	if !strings.Contains(got, "greedy  does not fit          -") || !strings.Contains(got, "! placer: infeasible: the best plan found takes 25.92 GB more memory than the devices have\nexit 3\n") {
		t.Error(got)
	}
}

// The largest peak of a graph without tensors is 0, and so is its bound: there is no
// share to tell.
func TestNothingInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("g.json", []byte(`{"format": "placer graph 1", "name": "g", "ops": [{"name": "a", "kind": "NoOp"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	got := command(t, []string{"search", "--graph", "g.json", "--gpus", "2", "--objective", "memory", "--methods", "human,random-best", "--evaluations", "3", "--out", "run", "-q"})
	if strings.Contains(got, "exit") || !strings.Contains(got, "max peak 0 B; proven lower bound 0 B") {
		t.Error(got)
	}
}

// A budget that loading uses up still gives the plan of the first rule that fits.
func TestNoTimeStillGivesAPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, stdout, stderr := process(t, dir, "search", "--workload", smallGraph, "--gpus", "2", "--budget", "1ns", "--out", "run", "-q")
	if code := exitOf(cmd.Wait()); code != 0 || !strings.Contains(stdout.String(), "* best: ") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "plan.json")); err != nil {
		t.Error(err)
	}
}
