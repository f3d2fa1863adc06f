package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnwritableCheckpoint: the plan and the table of a search come before what the
// disk has no room for, of which a checkpoint is not worth an error.
func TestUnwritableCheckpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	const run = "run"
	first := command(t, []string{"search", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--tasks", "place", "--methods", "human,GO-one", "--evaluations", "20", "--out", run, "-q"})
	if strings.Contains(first, "exit") {
		t.Fatal(first)
	}
	checkpoint := filepath.Join(run, "policy.safetensors")
	if _, err := os.Stat(checkpoint); err != nil {
		t.Fatal(err)
	}
	again := func(blocked string) string {
		for _, name := range []string{"result.json", "plan.json", blocked, filepath.Join("state", "GO-one.json")} {
			if err := os.RemoveAll(filepath.Join(run, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(run, blocked), 0o755); err != nil {
			t.Fatal(err)
		}
		got := command(t, []string{"search", "--resume", run})
		if _, err := os.Stat(filepath.Join(run, "plan.json")); err != nil || !strings.Contains(got, "\n* best: ") {
			t.Errorf("%s: %v, %s", blocked, err, got)
		}
		if err := os.Remove(filepath.Join(run, blocked)); err != nil {
			t.Error(err)
		}
		return got
	}
	if got := again("policy.safetensors"); strings.Contains(got, "exit") || !strings.Contains(got, "no checkpoint of the policy") {
		t.Errorf("a warning is expected: %s", got)
	}
	if got := again("report.html"); strings.Contains(got, "exit") || !strings.Contains(got, "no report: ") {
		t.Errorf("a warning is expected: %s", got)
	}
	if got := again("trace.json"); !strings.HasSuffix(got, "exit 1\n") || !strings.Contains(got, "trace.json is a folder") {
		t.Errorf("a table and an error are expected: %s", got)
	}
}

// TestUnwritablePlan: what was found is printed, though its plan finds no room.
func TestUnwritablePlan(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	t.Chdir(t.TempDir())
	graph := []string{"--workload", smallGraph, "--gpus", "2", "-q"}
	if got := command(t, append([]string{"search", "--methods", "single", "--evaluations", "1", "--out", "run"}, graph...)); strings.Contains(got, "exit") {
		t.Fatal(got)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"search", "--methods", "single", "--evaluations", "1"}, "\n* best: "},
		{[]string{"place"}, "\n best of 16 "},
		{[]string{"replan", "--plan", "run/plan.json", "--evaluations", "5"}, "\nmoving "},
	} {
		got := command(t, append(append(c.args, "-o", full), graph...))
		if !strings.Contains(got, c.want) || !strings.Contains(got, "no space left on device") || !strings.HasSuffix(got, "exit 1\n") {
			t.Errorf("%v, want %q:\n%s", c.args, c.want, got)
		}
	}
}
