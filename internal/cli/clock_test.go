//go:build unix

package cli

import (
	"bytes"
	"context"
	"testing"
	"time"
)

// TestClocksThatJump: under a budget in evaluations the plan does not depend on the clock,
// though every look at it is an hour later than the last, and on no date. A budget in time
// that is over at once still gives a plan.
func TestClocksThatJump(t *testing.T) {
	t.Chdir(t.TempDir())
	search := func(out string, clock func() float64, now time.Time, budget ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := &console{in: &bytes.Buffer{}, out: &stdout, err: &stderr, clock: clock, cpu: clock, hardware: noHardware(), now: func() time.Time { return now }}
		args := append([]string{"search", "--workload", smallGraph, "--gpus", "2", "--methods", "human,anneal,GO-one", "--workers", "1", "-q", "--out", out}, budget...)
		if code := c.run(context.Background(), args); code != 0 {
			t.Fatalf("%s: exit %d\n%s", out, code, &stderr)
		}
		return read(t, ".", out+"/plan.json")
	}
	still := func() float64 { return 0 }
	seconds := 0.0
	leaps := func() float64 { seconds += 3600; return seconds }
	want := search("still", still, time.Unix(0, 0), "--evaluations", "60")
	for name, now := range map[string]time.Time{"past": time.Unix(-1<<33, 0), "future": time.Unix(1<<34, 0)} {
		if got := search(name, leaps, now, "--evaluations", "60"); !bytes.Equal(got, want) {
			t.Errorf("%s: another plan", name)
		}
	}
	search("over", leaps, time.Unix(0, 0), "--budget", "1m")
}
