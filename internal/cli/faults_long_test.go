//go:build unix && long

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"placer/internal/fsx"
)

// Settings of make faults.
var (
	kills     = flag.Int("kills", 3, "times that each command is killed")
	faultSeed = flag.Uint64("faults.seed", 1, "seed of the moments")
)

// longRun is a command that takes a second or two in folder "run", how it is taken up
// again, and what it comes to.
type longRun struct {
	name  string
	args  []string
	again []string // takes the folder up again once it holds begun; nil: args does
	begun string
	files []string // what it comes to: bytes, documents, lines in any order
}

func longRuns() []longRun {
	return []longRun{
		{"search", append(slices.Clone(searchArgs[:5]), "--workers", "1", "--evaluations", "600", "--out", "run", "-q"), []string{"search", "--resume", "run", "-q", "--workers", "1"}, "config.json", []string{"plan.json", "result.json"}},
		{"compare", []string{"compare", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--methods", "human,heft,anneal,GO-one", "--seeds", "3", "--evaluations", "300", "--workers", "1", "--out", "run", "-q"}, []string{"compare", "--resume", "run", "-q", "--workers", "1"}, "matrix.json", []string{"trials.jsonl"}},
		{"pretrain", []string{"pretrain", "--workloads", "rnnlm", "--imitation", "2", "--steps", "2", "--task-steps", "2", "--samples", "4", "--pool", "2", "--most-rows", "400", "--teacher", "20", "--every", "1", "--out", "run", "-q"}, nil, "checkpoint.safetensors", []string{"policy.safetensors"}},
		{"finetune", []string{"finetune", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--samples", "64", "--steps", "20", "--workers", "1", "--out", "run", "-q"}, nil, tuneStateFile, []string{tunedPlanFile}},
		{"bench", []string{"bench", "regal", "--graphs", "4", "--evaluations", "200", "--no-cpsat", "--regal", "none", "--workers", "1", "--out", "run", "-q"}, nil, "run.json", []string{"graphs.jsonl"}},
	}
}

// start starts l in dir, or has it go on there.
func (l *longRun) start(t *testing.T, dir string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	args := l.args
	if _, err := os.Stat(filepath.Join(dir, "run", l.begun)); err == nil && l.again != nil {
		args = l.again
	}
	cmd, _, stderr = program(t, dir, args...)
	start(t, cmd)
	return cmd, stderr
}

// finish has l run in dir, or go on there, to its end.
func (l *longRun) finish(t *testing.T, dir string) {
	t.Helper()
	cmd, stderr := l.start(t, dir)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[1:], err, stderr)
	}
}

// outcome returns what l came to in dir, without what depends on the clock.
func (l *longRun) outcome(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	for _, name := range l.files {
		text := read(t, dir, filepath.Join("run", name))
		switch filepath.Ext(name) {
		case ".json":
			text = timeless(t, text)
		case ".jsonl":
			lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
			for i := range lines {
				lines[i] = timeless(t, lines[i])
			}
			slices.SortFunc(lines, bytes.Compare)
			text = bytes.Join(lines, []byte("\n"))
		}
		out.WriteString(name + "\n")
		out.Write(text)
	}
	return out.String()
}

// same holds what l came to in dir to want, and shows where they part.
func (l *longRun) same(t *testing.T, dir, want string) {
	t.Helper()
	got := l.outcome(t, dir)
	if got == want {
		return
	}
	k := 0
	for k < len(got) && k < len(want) && got[k] == want[k] {
		k++
	}
	near := func(s string) string { return s[max(0, k-100):min(len(s), k+200)] }
	t.Errorf("another result:\n%s\nwant\n%s", near(got), near(want))
}

// timeless returns the document text without members that are times of the run.
func timeless(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"seconds", "cpu_seconds", "first_feasible_s"} {
				delete(v, key)
			}
			for _, x := range v {
				strip(x)
			}
		case []any:
			for _, x := range v {
				strip(x)
			}
		}
	}
	strip(v)
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// undisturbed returns what l comes to and how long it takes.
func (l *longRun) undisturbed(t *testing.T) (want string, took time.Duration) {
	t.Helper()
	dir := t.TempDir()
	begin := time.Now()
	l.finish(t, dir)
	return l.outcome(t, dir), time.Since(begin)
}

// clean checks that no temporary file is left under dir.
func clean(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && fsx.Temporary(d.Name()) {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// stop has l run in dir and sends it the signal at a moment of most. It returns whether l had
// ended before.
func (l *longRun) stop(t *testing.T, dir string, s syscall.Signal, r *rand.Rand, most time.Duration) (ended bool) {
	t.Helper()
	cmd, stderr := l.start(t, dir)
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	moment := time.NewTimer(time.Duration(r.Float64() * float64(most)))
	defer moment.Stop()
	select {
	case err := <-over:
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		return true
	case <-moment.C:
	}
	if err := cmd.Process.Signal(s); err != nil {
		return (<-over) == nil // it ended in that moment
	}
	err := <-over
	if err == nil {
		return true
	}
	if code := exitOf(err); s == syscall.SIGTERM && code != -1 && (code != exitInterrupted || !oneLineOnly(stderr.String())) { // -1: before the program asks for signals
		t.Errorf("SIGTERM: exit %d\n%s", code, stderr)
	}
	whole(t, filepath.Join(dir, "run"))
	return false
}

func oneLineOnly(s string) bool {
	return strings.HasPrefix(s, "placer: ") && strings.HasSuffix(s, "\n") && strings.Count(s, "\n") == 1
}

// TestStoppedAtRandom stops each command at random moments, by a kill and by SIGTERM, once or
// a few times before it may end: what it comes to is what it comes to undisturbed.
func TestStoppedAtRandom(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, l := range longRuns() {
			t.Run(s.String()+"/"+l.name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(*faultSeed, uint64(s)))
				want, took := l.undisturbed(t)
				stopped, runs := 0, 0
				for ; stopped < *kills; runs++ {
					dir := t.TempDir()
					for range 1 + r.IntN(3) {
						if stopped == *kills || l.stop(t, dir, s, r, took) {
							break
						}
						stopped++
					}
					l.finish(t, dir)
					l.same(t, dir, want)
					if s == syscall.SIGKILL {
						clean(t, dir)
					}
					if t.Failed() {
						return
					}
				}
				t.Logf("%d stopped in %d runs of %v", stopped, runs, took)
			})
		}
	}
}
