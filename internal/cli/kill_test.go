//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("PLACER_TEST_FAKE") == "1" {
		os.Exit(mainOnFake(os.Args[1:]))
	}
	if os.Getenv("PLACER_TEST_MAIN") == "1" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process starts the program in dir.
func process(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PLACER_TEST_MAIN=1")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, stdout, stderr
}

// await waits for a file to appear while cmd runs.
func await(t *testing.T, cmd *exec.Cmd, path string, stderr *bytes.Buffer) {
	t.Helper()
	for range 6000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if cmd.ProcessState != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not appear", path)
}

func exitOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

var searchArgs = []string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--methods", "human,single,random-best", "--workers", "1", "--out"}

// TestKilledRunResumes kills a search in the middle of its last method. Its folder
// must hold whole files alone, and resumed it must end with the plan, byte for
// byte, that the search gives when nobody disturbs it.
func TestKilledRunResumes(t *testing.T) {
	dir := t.TempDir()
	budget := []string{"--evaluations", "20000"}
	cmd, _, stderr := process(t, dir, append(append(searchArgs, "killed"), budget...)...)
	// The first state of a running method is a second old.
	await(t, cmd, filepath.Join(dir, "killed", "state", "random-best.json"), stderr)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Skip("the search ended before it could be killed")
	}
	if _, err := os.Stat(filepath.Join(dir, "killed", "result.json")); err == nil {
		t.Skip("the search ended before it could be killed")
	}
	whole(t, filepath.Join(dir, "killed"))

	cmd, _, stderr = process(t, dir, "search", "--resume", "killed")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if strings.Contains(stderr.String(), "first feasible") {
		t.Errorf("baselines were run again:\n%s", stderr)
	}
	cmd, _, stderr = process(t, dir, append(append(searchArgs, "whole"), budget...)...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	resumed, undisturbed := read(t, dir, "killed/plan.json"), read(t, dir, "whole/plan.json")
	if !bytes.Equal(resumed, undisturbed) {
		t.Error("the resumed run ended with another plan")
	}
}

// TestKilledTuningResumes kills a fine-tuning; the same command goes on and ends
// with the plan, byte for byte, of one that nobody disturbed.
func TestKilledTuningResumes(t *testing.T) {
	dir := t.TempDir()
	args := []string{"finetune", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--samples", "64", "--steps", "30", "--out"}
	cmd, _, stderr := process(t, dir, append(args, "killed")...)
	await(t, cmd, filepath.Join(dir, "killed", tuneStateFile), stderr)
	cmd.Process.Kill()
	if err := cmd.Wait(); err == nil {
		t.Skip("it ended before it could be killed")
	}
	cmd, _, stderr = process(t, dir, append(args, "killed")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stderr.String(), "going on from step") {
		t.Errorf("it began anew:\n%s", stderr)
	}
	cmd, _, stderr = process(t, dir, append(args, "whole")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !bytes.Equal(read(t, dir, filepath.Join("killed", tunedPlanFile)), read(t, dir, filepath.Join("whole", tunedPlanFile))) {
		t.Error("the resumed run ended with another plan")
	}
	if events, err := filepath.Glob(filepath.Join(dir, "killed", "events.out.tfevents.*")); err != nil || len(events) != 2 {
		t.Errorf("event files %v, error %v, want two", events, err)
	}
}

// TestInterruptedRunIsWritten sends Ctrl-C to a search: it writes the best so far
// and says so.
func TestInterruptedRunIsWritten(t *testing.T) {
	dir := t.TempDir()
	cmd, stdout, stderr := process(t, dir, append(searchArgs, "run", "--budget", "1h")...)
	await(t, cmd, filepath.Join(dir, "run", "state", "random-best.json"), stderr)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(cmd.Wait()); code != exitInterrupted {
		t.Errorf("exit %d, want %d; stderr:\n%s", code, exitInterrupted, stderr)
	}
	whole(t, filepath.Join(dir, "run"))
	var result struct {
		Interrupted bool `json:"interrupted"`
		Rows        []struct {
			Method string `json:"method"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(read(t, dir, "run/result.json"), &result); err != nil {
		t.Fatal(err)
	}
	if !result.Interrupted || len(result.Rows) != 3 {
		t.Errorf("result %+v, want interrupted with three rows", result)
	}
	if !strings.Contains(stdout.String(), "random-best") || !strings.Contains(stderr.String(), "--resume run") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
	}
	cmd, _, stderr = process(t, dir, "simulate", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--plan", "run/plan.json")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the plan cannot be simulated: %v\n%s", err, stderr)
	}
}

// whole checks that every JSON file under dir is complete and that no temporary
// file is taken for one.
func whole(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !json.Valid(text) {
			t.Errorf("%s is not whole", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
