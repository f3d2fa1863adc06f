package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestInterrupt: a long command that is stopped (Ctrl-C ends its context, Main) ends with
// 130 and says so in one line.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	graph := []string{"--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2"}
	for _, c := range []struct {
		args []string
		out  bool // it has a folder
	}{
		{append([]string{"compare", "--methods", "anneal", "--seeds", "1", "--evaluations", "100000000", "--workers", "1"}, graph...), true},
		{append([]string{"finetune", "--samples", "64", "--steps", "1000000", "--workers", "1"}, graph...), true},
		{append([]string{"finetune", "--ppo", "--workers", "1"}, "--workload", "gnmt2", "--gpus", "2"), false},
		{append([]string{"verdict", "--evaluations", "100000000", "--workers", "1"}, graph...), true},
		{append([]string{"strategies", "--evaluations", "100000000"}, graph...), false},
		{[]string{"bench", "regal", "--graphs", "4", "--evaluations", "100000000", "--no-cpsat", "--regal", "none", "--workers", "1"}, true},
	} {
		t.Run(strings.Join(c.args[:2], " "), func(t *testing.T) {
			t.Parallel()
			console, _, log := realClock(nil)
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(2*time.Second, stop)
			args := append(slices.Clone(c.args), "-q")
			if c.out {
				args = append(args, "--out", filepath.Join(t.TempDir(), "run"))
			}
			if code := console.run(ctx, args); code != exitInterrupted {
				t.Errorf("exit %d, want %d; stderr:\n%s", code, exitInterrupted, log)
			}
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "placer: ") {
				t.Errorf("stderr, want one line:\n%s", text)
			}
		})
	}
}

// TestInterruptedAtOnce: a command that has nothing yet says no more than that.
func TestInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	console, _, log := realClock(nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	code := console.run(ctx, []string{"place", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2"})
	if text := log.String(); code != exitInterrupted || !strings.HasSuffix(text, "placer: interrupted\n") {
		t.Errorf("exit %d:\n%s", code, text)
	}
}
