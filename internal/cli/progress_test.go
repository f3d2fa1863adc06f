package cli

import (
	"bytes"
	"strings"
	"testing"

	"placer/placer/search"
	"placer/plan"
)

// TestProgressOfFewerGPUs: before the first search on fewer GPUs the progress says, once, why
// and at what budget.
func TestProgressOfFewerGPUs(t *testing.T) {
	var text bytes.Buffer
	p := (&console{err: &text}).newProgress(plan.Budget{Evaluations: 10})
	for _, of := range []string{"7 of 8", "6 of 8"} {
		p.observe(search.Event{Method: search.FewerMethod, Kind: plan.Search, What: search.Smaller, Budget: plan.Budget{Evaluations: 10}, Reason: of})
	}
	got := text.String()
	if n := strings.Count(got, "budget of 10 evaluations anew"); n != 1 || strings.Index(got, "evaluations anew") > strings.Index(got, "7 of 8") {
		t.Errorf("said %d times:\n%s", n, got)
	}
	for line := range strings.Lines(got) {
		if len(line) > helpWidth {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
