//go:build unix

package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptedCommands: Ctrl-C ends a command with 130 and one line on stderr. The
// signal is sent when the command first reads its clock.
func TestInterruptedCommands(t *testing.T) {
	t.Parallel()
	graph := []string{"--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2"}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"compare", append([]string{"compare", "--methods", "anneal", "--seeds", "1", "--evaluations", "100000000", "--workers", "1", "--out", "run"}, graph...)},
		{"finetune", append([]string{"finetune", "--samples", "64", "--steps", "1000000", "--workers", "1", "--out", "run"}, graph...)},
		{"verdict", append([]string{"verdict", "--evaluations", "100000000", "--workers", "1"}, graph...)},
		{"strategies", append([]string{"strategies", "--evaluations", "100000000"}, graph...)},
		{"bench", []string{"bench", "regal", "--graphs", "4", "--evaluations", "100000000", "--no-cpsat", "--regal", "none", "--workers", "1", "--out", "run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, _, stderr := program(t, dir, append(c.args, "-q")...)
			cmd.Env = append(cmd.Env, watchFor+"="+dir)
			startSaying(t, cmd)() // its clock is read, so that it asks for signals
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
			defer hung.Stop()
			if code := exitOf(cmd.Wait()); code != exitInterrupted {
				t.Errorf("exit %d, want %d; stderr:\n%s", code, exitInterrupted, stderr)
			}
			if text := stderr.String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "placer: ") {
				t.Errorf("stderr, want one line:\n%s", text)
			}
		})
	}
}
