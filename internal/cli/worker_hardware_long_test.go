//go:build unix && long

package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledMeasuringWorker kills a worker in the middle of a measurement: its
// kernels never end. The other worker measures that placement too, nothing is
// counted twice, and the plan is the one of a search that nobody disturbs.
func TestKilledMeasuringWorker(t *testing.T) {
	dir := t.TempDir()
	_, machine := twoOnOne(t, dir)
	args := func(out string, members ...string) []string {
		return measuredSearch(t, machine, out, "hardware", append(members, onOneGPU)...)
	}
	own, _, stderr := fakeProcess(t, dir, args("own")...)
	if err := own.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	at := freePort(t)
	worker := func(name string) []string {
		return []string{"worker", "--hub", "nats://" + at, "--hardware", "--machine", machine, "--name", name}
	}
	bad, hung := hangingProcess(t, dir, worker("bad")...)
	_, _, goodLog := fakeProcess(t, dir, worker("good")...)
	search, _, stderr := process(t, dir, args("helped", fmt.Sprintf(`"hub": {"address": %q, "await": 2}`, at))...)
	hung()
	kill(t, bad)
	if err := search.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr, goodLog)
	}
	if !bytes.Equal(read(t, dir, "own/plan.json"), read(t, dir, "helped/plan.json")) {
		t.Error("another plan than without workers")
	}
	a, b := result(t, filepath.Join(dir, "own")).Measured, result(t, filepath.Join(dir, "helped")).Measured
	if *a != *b {
		t.Errorf("measured here %+v, by workers %+v", a, b)
	}
	if want := fmt.Sprintf("measured by workers: %d\n", b.Placements); !strings.Contains(stderr.String(), want) {
		t.Errorf("no %q in %s", want, stderr)
	}
}

// TestKilledMeasuringSearch kills a search that measures. Resumed, it measures
// nothing that its folder knows, and comes to the plan of a search that nobody
// disturbs.
func TestKilledMeasuringSearch(t *testing.T) {
	dir := t.TempDir()
	_, machine := twoOnOne(t, dir)
	whole, _, stderr := fakeProcess(t, dir, measuredSearch(t, machine, "whole", "both", onOneGPU)...)
	if err := whole.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	killed, hung := hangingProcess(t, dir, measuredSearch(t, machine, "killed", "both", onOneGPU)...)
	hung()
	kill(t, killed)
	known := bytes.Count(read(t, dir, "killed/measurements.jsonl"), []byte("\n"))
	again, _, stderr := fakeProcess(t, dir, "search", "--resume", "killed")
	if err := again.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !bytes.Equal(read(t, dir, "whole/plan.json"), read(t, dir, "killed/plan.json")) {
		t.Error("another plan than undisturbed")
	}
	a, b := result(t, filepath.Join(dir, "whole")).Measured, result(t, filepath.Join(dir, "killed")).Measured
	if known < 3 || b.Placements != a.Placements-known {
		t.Errorf("measured %d of %d with %d known", b.Placements, a.Placements, known)
	}
}

// kill ends a process without a word.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}

// fakeProcess is process on a host with the fake's GPU.
func fakeProcess(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd, stdout, stderr = program(t, dir, args...)
	cmd.Env = append(cmd.Env, onFakeGPU+"=1")
	start(t, cmd)
	return cmd, stdout, stderr
}

// hangingProcess is fakeProcess with a GPU that never answers in its fifth
// measurement; hung waits until it is there.
func hangingProcess(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, hung func()) {
	t.Helper()
	cmd, _, _ = program(t, dir, args...)
	cmd.Env = append(cmd.Env, onFakeGPU+"=1", hangingGPU+"=1")
	return cmd, startSaying(t, cmd)
}
