//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"placer/internal/dispatch"
	"placer/measure/python/pythontest"
)

// Variables that let the test binary stand in for the program.
const (
	asProgram = "PLACER_TEST_MAIN"
	onFakeGPU = "PLACER_TEST_FAKE"
	asHub     = "PLACER_TEST_HUB" // address of a hub of its own; its folder is the argument
	// The file that the program's clock watches for: when it is there the program says
	// so on its third descriptor, with standStill it then stands still for good.
	watchFor   = "PLACER_TEST_WATCH"
	standStill = "PLACER_TEST_STOP"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(pythontest.Behaviour) != "":
		os.Exit(pythontest.Main(os.Getenv(pythontest.Behaviour), os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(onFakeGPU) != "":
		os.Exit(mainOnFake(os.Args[1:]))
	case os.Getenv(asHub) != "":
		if _, err := dispatch.StartHub(dispatch.HubConfig{Listen: os.Getenv(asHub), Store: os.Args[1]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		select {} // until it is killed
	case os.Getenv(asProgram) != "":
		c := newConsole(os.Stdin, os.Stdout, os.Stderr)
		if path := os.Getenv(watchFor); path != "" {
			c.clock = watching(c.clock, path)
		}
		os.Exit(c.main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// watching is a clock that looks for a file. It runs fast, so that what is written
// once a second is written at once.
func watching(clock func() float64, path string) func() float64 {
	var mu sync.Mutex
	ticks, told := 0.0, false
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		if _, err := os.Stat(path); err == nil && !told {
			told = true
			os.NewFile(3, "watch").Close()
		}
		switch {
		case !told:
			ticks += 0.05
		case os.Getenv(standStill) != "":
			select {}
		}
		return clock() + ticks
	}
}

// process starts the program in dir.
func process(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd, stdout, stderr = program(t, dir, args...)
	start(t, cmd)
	return cmd, stdout, stderr
}

// program is process before it starts.
func program(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
}

// startSaying starts cmd and returns what waits until it closes its third
// descriptor or ends.
func startSaying(t *testing.T, cmd *exec.Cmd) (wait func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	start(t, cmd)
	w.Close()
	return func() {
		r.Read(make([]byte, 1))
		r.Close()
	}
}

// until starts the program in dir and returns when it has written the file path
// there; with standing it then does nothing any more.
func until(t *testing.T, dir, path string, standing bool, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd, stdout, stderr = program(t, dir, args...)
	cmd.Env = append(cmd.Env, watchFor+"="+path)
	if standing {
		cmd.Env = append(cmd.Env, standStill+"=1")
	}
	startSaying(t, cmd)()
	if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
		t.Fatalf("%s does not appear; stderr:\n%s", path, stderr)
	}
	return cmd, stdout, stderr
}

// killed starts the program, lets it write the file path and kills it.
func killed(t *testing.T, dir, path string, args ...string) {
	t.Helper()
	cmd, _, _ := until(t, dir, path, true, args...)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
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
	t.Parallel()
	dir := t.TempDir()
	budget := []string{"--evaluations", "5000"}
	killed(t, dir, "killed/state/random-best.json", append(append(searchArgs, "killed"), budget...)...)
	if _, err := os.Stat(filepath.Join(dir, "killed", "result.json")); err == nil {
		t.Error("the search ended before it was killed")
	}
	whole(t, filepath.Join(dir, "killed"))

	cmd, _, stderr := process(t, dir, "search", "--resume", "killed")
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
	t.Parallel()
	dir := t.TempDir()
	args := []string{"finetune", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--samples", "64", "--steps", "30", "--out"}
	killed(t, dir, "killed/"+tuneStateFile, append(args, "killed")...)
	cmd, _, stderr := process(t, dir, append(args, "killed")...)
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

// twice sends a signal as timeout(1) does: to the program, and to its group.
func twice(p *os.Process, s os.Signal) error {
	first := p.Signal(s)
	time.Sleep(20 * time.Millisecond) // else the two are one to the kernel
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return first
}

// TestInterruptedSaysSo: what a signal stops says that it was interrupted, not which signal came.
func TestInterruptedSaysSo(t *testing.T) {
	t.Parallel()
	cmd, _, stderr := process(t, t.TempDir(), "bench", "regal", "--graphs", "4", "--evaluations", "100000000", "--no-cpsat", "--regal", "none", "-q")
	time.Sleep(2 * time.Second)
	if err := twice(cmd.Process, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(cmd.Wait()); code != exitInterrupted || stderr.String() != "placer: interrupted\n" {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestHangupIsWritten: a search whose terminal or connection ends writes what it has, and one that
// was started by nohup goes on.
func TestHangupIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _, stderr := until(t, dir, "run/state/random-best.json", false, append(searchArgs, "run", "--budget", "1h")...)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(cmd.Wait()); code != exitInterrupted || !strings.Contains(stderr.String(), "--resume run") {
		t.Errorf("exit %d, want %d; stderr:\n%s", code, exitInterrupted, stderr)
	}
	whole(t, filepath.Join(dir, "run"))

	cmd, _, stderr = program(t, dir, append(searchArgs, "on", "--evaluations", "20000")...)
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Env = append(cmd.Env, watchFor+"=on/state/random-best.json")
	startSaying(t, cmd)()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// TestProgressThatNobodyReads: a search whose stderr is a pipe that nobody reads any more ends as
// any other.
func TestProgressThatNobodyReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd, stdout, _ := program(t, dir, "search", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--methods", "human,single", "--evaluations", "1", "--out", "run")
	cmd.Stderr = w
	if code := exitOf(cmd.Run()); code != 0 || !strings.Contains(stdout.String(), "human") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	read(t, dir, "run/report.html")
}

// TestInterruptedRunIsWritten sends Ctrl-C to a search: it writes the best so far
// and says so.
func TestInterruptedRunIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, stdout, stderr := until(t, dir, "run/state/random-best.json", false, append(searchArgs, "run", "--budget", "1h")...)
	if err := twice(cmd.Process, syscall.SIGINT); err != nil {
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
// file is taken for one. A command may be stopped before it has a folder.
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
