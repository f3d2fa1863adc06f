//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"placer/dispatch"
)

// The faults that workers, hub and controller can suffer, with real processes
// on this host. Whatever happens, the search ends with the plan of a search that
// nobody helps, and each sample is counted once.

// crowdArgs is a search whose policy keeps workers busy for a moment.
func crowdArgs(out string, more ...string) []string {
	return append([]string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--methods", "human,GO-one", "--workers", "1", "--evaluations", "1500", "--out", out}, more...)
}

// freePort returns an address that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// alone is the plan of the search without workers.
func alone(t *testing.T, dir string) []byte {
	t.Helper()
	cmd, _, stderr := process(t, dir, crowdArgs("alone", "-q")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return read(t, dir, "alone/plan.json")
}

// counted returns the samples that workers and the controller evaluated.
func counted(t *testing.T, stderr string) (remote, local int) {
	t.Helper()
	m := regexp.MustCompile(`samples evaluated: (\d+) by workers, (\d+) here`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("no count of samples in\n%s", stderr)
	}
	remote, _ = strconv.Atoi(m[1])
	local, _ = strconv.Atoi(m[2])
	return remote, local
}

// evaluations returns what the search's own table says the policy used.
func evaluations(t *testing.T, stdout string) int {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(strings.ReplaceAll(line, "* ", "")); len(f) > 2 && f[0] == "GO-one" {
			n, err := strconv.Atoi(f[len(f)-2])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
	}
	t.Fatalf("no policy in\n%s", stdout)
	return 0
}

// helped is one search with workers and a disturbance.
type helped struct {
	search         *exec.Cmd
	stdout, stderr *bytes.Buffer
	workers        []*exec.Cmd
	logs           []*bytes.Buffer
	dir            string
}

// help starts workers and a search that waits for them.
func help(t *testing.T, dir string, workers int, more ...string) *helped {
	t.Helper()
	at := freePort(t)
	h := &helped{dir: dir}
	for k := range workers {
		cmd, _, log := process(t, dir, "worker", "--hub", "nats://"+at, "--slots", "1", "--name", fmt.Sprint("w", k))
		h.workers, h.logs = append(h.workers, cmd), append(h.logs, log)
	}
	h.search, h.stdout, h.stderr = process(t, dir, crowdArgs("helped", append([]string{"--hub", at, "--await", strconv.Itoa(workers)}, more...)...)...)
	return h
}

// busy waits until the policy has begun.
func (h *helped) busy(t *testing.T) {
	t.Helper()
	await(t, h.search, filepath.Join(h.dir, "helped", "state", "human.json"), h.stderr)
	time.Sleep(150 * time.Millisecond)
}

// check waits for the search and compares its plan and its counts.
func (h *helped) check(t *testing.T, want []byte) (remote, local int) {
	t.Helper()
	if err := h.search.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, h.stderr)
	}
	if !bytes.Equal(read(t, h.dir, "helped/plan.json"), want) {
		t.Error("the plan is another than without workers")
	}
	remote, local = counted(t, h.stderr.String())
	if n := evaluations(t, h.stdout.String()); remote+local != n {
		t.Errorf("%d samples by workers and %d here, the search counted %d", remote, local, n)
	}
	return remote, local
}

func TestWorkersHelp(t *testing.T) {
	dir := t.TempDir()
	want := alone(t, dir)
	h := help(t, dir, 2)
	if remote, _ := h.check(t, want); remote == 0 {
		t.Errorf("workers did nothing\n%s", h.stderr)
	}
	for _, w := range h.workers {
		if err := w.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := w.Wait(); err != nil {
			t.Errorf("a worker that is told to stop ends with %v", err)
		}
	}
}

func TestWrongKey(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"keys", "others"} {
		cmd, _, stderr := process(t, dir, "worker", "keys", "-o", name)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
	}
	hub, err := dispatch.StartHub(dispatch.HubConfig{Listen: "127.0.0.1:0", Keys: filepath.Join(dir, "keys", "hub"), Store: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	ca := read(t, dir, "keys/hub/ca.pem")
	if err := os.WriteFile(filepath.Join(dir, "others", "worker-1", "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _, stderr := process(t, dir, "worker", "--hub", hub.URL(), "--hub-keys", "others/worker-1")
	if code := exitOf(cmd.Wait()); code != exitFailed || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "does not know the key in others/worker-1") {
		t.Errorf("exit %d, stderr %q; want %d and one line on the key", code, stderr, exitFailed)
	}
	good, _, log := process(t, dir, "worker", "--hub", hub.URL(), "--hub-keys", "keys/worker-1", "--slots", "1")
	search, stdout, stderr := process(t, dir, crowdArgs("helped", "--hub", hub.URL(), "--hub-keys", "keys/hub", "--await", "1")...)
	h := &helped{search: search, stdout: stdout, stderr: stderr, dir: dir}
	if remote, _ := h.check(t, alone(t, dir)); remote == 0 {
		t.Errorf("the worker with a key did nothing\n%s", log)
	}
	good.Process.Signal(syscall.SIGTERM)
}
