package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedRunFolder resumes a run one of whose files is empty, cut off or garbage:
// one line that names the file, exit 1.
func TestDamagedRunFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	const run = "run"
	out := command(t, []string{"search", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--methods", "human,random-best", "--evaluations", "5", "--out", run, "-q"})
	if strings.Contains(out, "exit") {
		t.Fatal(out)
	}
	if err := os.Remove(filepath.Join(run, "result.json")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "machine.json", "state.json", "state/human.json"} {
		path := filepath.Join(run, filepath.FromSlash(name))
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range [][]byte{{}, good[:len(good)/2], []byte("\x00\x01garbage"), []byte(`{"unknown": 1}`)} {
			if err := os.WriteFile(path, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			got := command(t, []string{"search", "--resume", run, "-q"})
			if !strings.HasPrefix(got, "! placer: "+path+": ") || !strings.HasSuffix(got, "exit 1\n") || strings.Count(got, "\n") != 2 {
				t.Errorf("%s holds %.20q: %s", name, bad, got)
			}
		}
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := command(t, []string{"search", "--resume", run, "-q"}); strings.Contains(got, "exit") {
		t.Errorf("mended: %s", got)
	}
}

// TestLeftOfKill: what a kill left of a file half written goes, times that cannot be
// are refused, and a result without rows is none.
func TestLeftOfKill(t *testing.T) {
	t.Chdir(t.TempDir())
	const run = "run"
	if out := command(t, []string{"search", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--methods", "human", "--evaluations", "5", "--out", run, "-q"}); strings.Contains(out, "exit") {
		t.Fatal(out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(run, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("result.json", "{}")
	left := []string{"state/.human.json.123.placer-tmp", ".plan.json.45.placer-tmp"}
	for _, name := range left {
		write(name, "half")
	}
	if got := command(t, []string{"search", "--resume", run, "-q"}); strings.Contains(got, "complete") || strings.Contains(got, "exit") || !strings.Contains(got, "* best: one-device") {
		t.Errorf("an empty result: %s", got)
	}
	for _, name := range left {
		if _, err := os.Stat(filepath.Join(run, filepath.FromSlash(name))); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if err := os.Remove(filepath.Join(run, "result.json")); err != nil {
		t.Fatal(err)
	}
	write("state.json", `{"format": "placer state 1", "seconds": -2400, "first_feasible_s": 0}`)
	if got := command(t, []string{"search", "--resume", run, "-q"}); !strings.HasPrefix(got, "! placer: "+filepath.Join(run, "state.json")+": ") || !strings.HasSuffix(got, "exit 1\n") {
		t.Errorf("negative seconds: %s", got)
	}
}
