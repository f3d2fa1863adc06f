package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"placer/internal/report"
	"placer/placer/pretrained"
	"placer/plan"
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

// TestTunedIsNotBehindTheExpert: a fine-tuning whose samples are all worse than the human expert's
// placement, which it has judged, ends with that.
func TestTunedIsNotBehindTheExpert(t *testing.T) {
	outcome := func(device uint8, seconds float64) *plan.Outcome {
		return &plan.Outcome{Decision: plan.Decision{Device: []uint8{device}}, Score: plan.Score{Value: seconds}}
	}
	for _, c := range []struct {
		name    string
		seconds float64
		method  string
		device  uint8
	}{{"better", 1, "fine-tuned", 1}, {"as good", 2, "fine-tuned", 1}, {"worse", 3, "human", 0}} {
		doc := &report.Placed{Human: 2, HumanFits: true}
		got := tuned(doc, "fine-tuned", outcome(1, c.seconds), outcome(0, 2))
		if got.method != c.method || got.Device[0] != c.device || (doc.Note != "") != (c.method == "human") || len(doc.Rows) != 1 || doc.Rows[0].StepTime != c.seconds {
			t.Errorf("%s: %+v, document %+v", c.name, got, doc)
		}
	}
}

// TestPolicyFromStdin: a policy is read from stdin, and a damaged one is not.
func TestPolicyFromStdin(t *testing.T) {
	policy, err := pretrained.Policy()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := policy.Write(&file); err != nil {
		t.Fatal(err)
	}
	card := func(data []byte) (code int, stdout, stderr string) {
		var out, err bytes.Buffer
		c := newConsole(bytes.NewReader(data), &out, &err)
		return c.run(t.Context(), []string{"place", "--card", "--policy", "-"}), out.String(), err.String()
	}
	if code, out, says := card(file.Bytes()); code != 0 || !strings.HasPrefix(out, "policy stdin: ") {
		t.Errorf("exit %d: %s%s", code, out, says)
	}
	damaged := bytes.Clone(file.Bytes())
	damaged[len(damaged)-9] ^= 1
	if code, _, says := card(damaged); code != exitFailed || !strings.Contains(says, "stdin: safetensors: the file is damaged") {
		t.Errorf("a damaged policy: exit %d: %s", code, says)
	}
}
