package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestInterruptedPlace: what place had when it was interrupted is printed, and the exit code
// says that it was interrupted.
func TestInterruptedPlace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, err bytes.Buffer
	c, calls := newConsole(nil, &out, &err), 0
	c.clock = func() float64 { // read before and after the placements are made
		if calls++; calls == 2 {
			cancel()
		}
		return 0
	}
	code := c.run(ctx, []string{"place", "--workload", smallGraph, "--gpus", "2"})
	if code != exitInterrupted || !strings.Contains(out.String(), "greedy") {
		t.Errorf("exit %d, want %d\n%s%s", code, exitInterrupted, out.String(), err.String())
	}
}
