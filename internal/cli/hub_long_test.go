//go:build unix && long

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"placer/internal/dispatch"
)

// busy starts workers and a search and returns when the policy has begun, with
// the flags of a search at their hub; with standing the search then does nothing any
// more.
func busy(t *testing.T, dir string, standing bool) (h *helped, hub []string) {
	t.Helper()
	h, hub = startWorkers(t, dir, 2)
	h.search, h.stdout, h.stderr = until(t, dir, "helped/state/GO-one.json", standing, helpedArgs("helped", hub...)...)
	return h, hub
}

func TestKilledWorker(t *testing.T) {
	h, _ := busy(t, t.TempDir(), false)
	if err := h.workers[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.check(t)
}

// A worker that stands still for longer than a job may go without a sign of life
// loses it to the other one; when it goes on, its answer is one too many.
func TestStoppedWorker(t *testing.T) {
	h, _ := busy(t, t.TempDir(), false)
	if err := h.workers[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(8*time.Second, func() { h.workers[0].Process.Signal(syscall.SIGCONT) })
	h.check(t)
}

// A controller that is killed is resumed at the same address; the workers find
// it again.
func TestKilledController(t *testing.T) {
	h, hub := busy(t, t.TempDir(), true)
	if err := h.search.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.search.Wait()
	h.search, h.stdout, h.stderr = process(t, h.dir, append([]string{"search", "--resume", "helped"}, hub...)...)
	if remote, _ := h.check(t); remote == 0 {
		t.Errorf("the workers did not come back\n%s\n%s", h.logs[0], h.stderr)
	}
}

// A hub that takes only small messages leaves the large ones to the controller.
func TestOversizedMessages(t *testing.T) {
	dir := t.TempDir()
	cmd, _, stderr := process(t, dir, helpedArgs("alone", "-q", "--granularity", "op")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	hub, err := dispatch.StartHub(dispatch.HubConfig{Listen: "127.0.0.1:0", Store: t.TempDir(), MaxPayload: 600})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	worker, _, _ := process(t, dir, "worker", "--hub", hub.URL(), "--slots", "1")
	defer worker.Process.Kill()
	search, stdout, stderr := process(t, dir, helpedArgs("helped", "--granularity", "op", "--config", hubFile(t, hub.URL(), 1))...)
	h := &helped{search: search, stdout: stdout, stderr: stderr, dir: dir}
	if _, local := h.compare(t, read(t, dir, "alone/plan.json")); local == 0 || !strings.Contains(stderr.String(), "more than the hub's limit of 600") {
		t.Errorf("no message was too large\n%s", stderr)
	}
}

// A disk without room for the hub: what it holds is in memory.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	small, _ := smallDisk(t, "64k")
	fill := make([]byte, 1<<20)
	if err := os.WriteFile(filepath.Join(small, "full"), fill, 0o644); err == nil {
		t.Fatal("the disk is not full")
	}
	t.Setenv("TMPDIR", small)
	h := help(t, dir, 1)
	h.check(t)
}
