//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// senders is twoCores with copies that occupy the sender, and cores that share their
// memory.
func senders() string {
	m := strings.Replace(twoCores, `"latency": "2 us"`, `"latency": "2 us", "occupies": "sender", "delivery": "1 us", "receive": "1 us"`, 1)
	return strings.Replace(m, `"memory_bandwidth": "30 GB/s"`, `"memory_bandwidth": "30 GB/s", "shared_memory_bandwidth": "21 GB/s"`, 1)
}

// What does not know copies that occupy the sender says so in one line, and so does
// what predictions leave out of a machine.
func TestSendersSayWhatTheyDoNot(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"graph.json": branches, "machine.json": senders(), "links.json": twoCores} {
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := []string{"--graph", path("graph.json"), "--cpu", "--machine"}
	args := func(command, machine string, more ...string) []string {
		return append(append([]string{command}, append(in, path(machine))...), more...)
	}
	code, _, stderr := runHere(args("search", "machine.json", "--methods", "heft", "--tasks", "place,schedule", "--evaluations", "5", "--out", path("run"), "-o", path("plan.json"))...)
	if want := "note: machine two cores: a core that streams beside another reaches 70% of its memory bandwidth, which predictions leave out"; code != 0 || !strings.Contains(stderr, want) {
		t.Errorf("exit %d: %s; want %q", code, stderr, want)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{args("search", "machine.json", "--objective", "throughput", "--evaluations", "5", "--out", path("no")), 1, "machine two cores: the throughput objective knows no copies that occupy the sender"},
		{args("export", "machine.json", "--plan", path("plan.json"), "--as", "schedule", "--contention", "fair-share"), 1, "transfers occupy the sender on machine two cores, which contention fair-share cannot say"},
		{args("export", "machine.json", "--plan", path("plan.json"), "--as", "schedule", "--contention", "often"), 2, "often"},
		{args("export", "machine.json", "--plan", path("plan.json"), "--contention", "fifo"), 2, "--contention does not go with --to plan"},
	} {
		code, stdout, stderr := runHere(c.args...)
		last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
		if code != c.code || stdout != "" || !strings.Contains(last, c.want) {
			t.Errorf("%v: exit %d, %s%s; want exit %d and %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
	schedules := map[string]string{}
	for _, contention := range []string{"", "fifo", "none"} {
		more := []string{"--plan", path("plan.json"), "--as", "schedule"}
		if contention != "" {
			more = append(more, "--contention", contention)
		}
		code, stdout, stderr := runHere(args("export", "links.json", more...)...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", contention, code, stderr)
		}
		schedules[contention] = stdout
	}
	if schedules[""] != schedules["fifo"] {
		t.Error("fifo is not the default")
	}
}
