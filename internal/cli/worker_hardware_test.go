//go:build !light

package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"placer/hw/gpu/fake"
	"placer/internal/dispatch"
)

// startHub starts a hub for the test.
func startHub(t testing.TB) *dispatch.Hub {
	t.Helper()
	hub, err := dispatch.StartHub(dispatch.HubConfig{Listen: "127.0.0.1:0", Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return hub
}

// measuringWorker starts a worker with fake GPUs and returns what stops it.
func measuringWorker(t *testing.T, f fake.Config, hub, name, machine string) (log *lockedBuffer) {
	t.Helper()
	c, _, log := realClock(&f)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- c.run(ctx, []string{"worker", "--hub", hub, "--hardware", "--machine", machine, "--name", name})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("worker %s: exit %d: %s", name, code, log)
		}
	})
	return log
}

// TestHardwareWorkers: a host without GPUs searches with those of two workers, and
// comes to the plan that it comes to with a GPU of its own.
func TestHardwareWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, machine := twoOnOne(t, dir)
	hub := startHub(t)
	for k := range 2 {
		measuringWorker(t, f, hub.URL(), fmt.Sprint("w", k), machine)
	}
	for _, evaluator := range []string{"hardware", "both"} {
		own := filepath.Join(dir, evaluator+"-own")
		if code, _, stderr := onFake(t, f, measuredSearch(t, machine, own, evaluator, onOneGPU)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", evaluator, code, stderr)
		}
		c, _, log := realClock(nil)
		helped := filepath.Join(dir, evaluator+"-helped")
		if code := c.run(context.Background(), measuredSearch(t, machine, helped, evaluator, onOneGPU, fmt.Sprintf(`"hub": {"address": %q, "await": 2}`, hub.URL()))); code != 0 {
			t.Fatalf("%s: exit %d: %s", evaluator, code, log)
		}
		if !bytes.Equal(read(t, own, "plan.json"), read(t, helped, "plan.json")) {
			t.Errorf("%s: another plan with workers than without", evaluator)
		}
		a, b := result(t, own), result(t, helped)
		if *a.Measured != *b.Measured {
			t.Errorf("%s: measured here %+v, by workers %+v", evaluator, a.Measured, b.Measured)
		}
		if x := b.Best.StepTime/a.Best.StepTime - 1; x > 1e-5 || x < -1e-5 {
			t.Errorf("%s: step %v here, %v by workers", evaluator, a.Best.StepTime, b.Best.StepTime)
		}
		if want := fmt.Sprintf("measured by workers: %d\n", b.Measured.Placements); !strings.Contains(log.String(), want) {
			t.Errorf("%s: no %q in %s", evaluator, want, log)
		}
	}
}

// TestRefusedMeasurement: a worker refuses what it cannot measure and says why,
// and the search ends with that reason, to be taken up again.
func TestRefusedMeasurement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, machine := twoOnOne(t, dir)
	hub := startHub(t)
	measuringWorker(t, f, hub.URL(), "w", machine)
	c, _, log := realClock(nil)
	args := []string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--machine", machine, "--methods", "human,single,roundrobin,random", "--evaluations", "5", "--out", filepath.Join(dir, "run"), "--evaluator", "hardware", "--config", settingsFile(t, fmt.Sprintf(`"hub": {"address": %q}`, hub.URL()))}
	code := c.run(context.Background(), args) // without measuring.logical
	if want := "3 measurements in a row failed, the last: worker w: machine A100-SXM4-80GB in 2 has more GPUs than the 1 here"; code != exitFailed || !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "--resume") {
		t.Errorf("exit %d; want %q in\n%s", code, want, log)
	}

	// A job for another machine that comes to this worker's queue all the same.
	g := fake.New(f)
	own, err := c.loadMachine(&machineFlags{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	w := &hardwareWorker{c: c, machine: own, gpus: &localGPUs{driver: g, blas: g.BLAS()}}
	other, err := c.loadMachine(&machineFlags{GPU: "p100", GPUs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := other.Write(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := w.evaluator(dispatch.Problem{Kind: dispatch.Hardware(w.machine.Hash()), Machine: text.Bytes()}); err == nil || !strings.Contains(err.Error(), "this worker measures on") {
		t.Errorf("a job for another machine: error %v", err)
	}
}
