//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"placer/internal/dispatch"
	"placer/plan"
)

// The faults that workers, hub and controller can suffer, with real processes
// on this host. Whatever happens, the search ends with the plan of a search that
// nobody helps, and each sample is counted once.

// helpedArgs is a search whose policy keeps workers busy for a moment.
func helpedArgs(out string, more ...string) []string {
	return append([]string{"search", "--workload", "rnnlm:layers=2,unroll=3", "--gpus", "2", "--methods", "human,GO-one", "--workers", "1", "--evaluations", "500", "--out", out}, more...)
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

// alone returns the plan of the search without workers.
var alone = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "placer-alone-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var log bytes.Buffer
	if code := Main(helpedArgs(filepath.Join(dir, "alone"), "-q"), nil, &log, &log); code != 0 {
		return nil, errors.New(log.String())
	}
	return os.ReadFile(filepath.Join(dir, "alone", "plan.json"))
})

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
			n, err := strconv.Atoi(f[len(f)-1])
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

// hubFile is a file of settings with a hub.
func hubFile(t *testing.T, at string, await int) string {
	t.Helper()
	return settingsFile(t, fmt.Sprintf(`"hub": {"address": %q, "await": %d}`, at, await))
}

// startWorkers starts workers for a hub and returns what searches with them.
func startWorkers(t *testing.T, dir string, workers int) (h *helped, args []string) {
	t.Helper()
	at := freePort(t)
	h = &helped{dir: dir}
	for k := range workers {
		cmd, _, log := process(t, dir, "worker", "--hub", "nats://"+at, "--slots", "1", "--name", fmt.Sprint("w", k))
		h.workers, h.logs = append(h.workers, cmd), append(h.logs, log)
	}
	return h, []string{"--config", hubFile(t, at, workers)}
}

// help starts workers and a search that waits for them.
func help(t *testing.T, dir string, workers int) *helped {
	t.Helper()
	h, args := startWorkers(t, dir, workers)
	h.search, h.stdout, h.stderr = process(t, dir, helpedArgs("helped", args...)...)
	return h
}

// check waits for the search and compares its plan and its counts.
func (h *helped) check(t *testing.T) (remote, local int) {
	t.Helper()
	want, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	return h.compare(t, want)
}

// compare is check with the plan that is wanted.
func (h *helped) compare(t *testing.T, want []byte) (remote, local int) {
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

// TestWorkersHelp: with two workers at its hub a search, which decides fusion too, by
// what kernels cost, ends with the plan, byte for byte, of one without.
func TestWorkersHelp(t *testing.T) {
	t.Parallel()
	want, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Read(bytes.NewReader(want), "plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if levels := slices.Compact(slices.Sorted(slices.Values(p.Fusion))); len(levels) < 3 {
		t.Errorf("levels of fusion %v: it was not learnt, the case tests nothing", levels)
	}
	h := help(t, t.TempDir(), 2)
	if remote, _ := h.check(t); remote == 0 {
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
	t.Parallel()
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
	search, stdout, stderr := process(t, dir, helpedArgs("helped", "--config", settingsFile(t, fmt.Sprintf(`"hub": {"address": %q, "keys": "keys/hub", "await": 1}`, hub.URL())))...)
	h := &helped{search: search, stdout: stdout, stderr: stderr, dir: dir}
	if remote, _ := h.check(t); remote == 0 {
		t.Errorf("the worker with a key did nothing\n%s", log)
	}
	good.Process.Signal(syscall.SIGTERM)
}

// TestNoRunWithoutItsHub: a search whose hub cannot be had leaves no folder, and one that was there
// empty; the same command runs when it can.
func TestNoRunWithoutItsHub(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("mine", 0o755); err != nil {
		t.Fatal(err)
	}
	config := settingsText(t, `{"format": "placer run 1", "hub": {"address": "127.0.0.1:0", "keys": "none"}}`)
	search := []string{"search", "-q", "--workload", smallGraph, "--gpus", "2", "--methods", "single", "--evaluations", "1"}
	for _, out := range []string{"", "new", "mine"} {
		args := search
		if out != "" {
			args = append(slices.Clone(search), "--out", out)
		}
		if code, _, says := runHere(append(args, "--config", config)...); code != exitFailed || !strings.Contains(says, "none") {
			t.Fatalf("--out %q: exit %d: %s", out, code, says)
		}
		for _, left := range []string{"runs/*", "new", "mine/*"} {
			if found, _ := filepath.Glob(left); len(found) > 0 {
				t.Errorf("--out %q left %v", out, found)
			}
		}
		if _, err := os.Stat("mine"); err != nil {
			t.Error(err)
		}
	}
	for _, out := range []string{"new", "mine"} {
		if code, _, says := runHere(append(search, "--out", out)...); code != 0 {
			t.Errorf("--out %q without a hub: exit %d: %s", out, code, says)
		}
	}
}
