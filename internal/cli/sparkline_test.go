package cli

import (
	"testing"

	"placer/placer/search"
	"placer/plan"
)

// TestSparkline: columns are shares of the budget, heights are logarithmic between the
// first value and the best; what was not known yet is empty.
func TestSparkline(t *testing.T) {
	var s sparkline
	if s.String() != "" {
		t.Errorf("%q before the first value", s.String())
	}
	s.add(2.0/sparkColumns, 16)
	s.add(4.0/sparkColumns, 4)
	s.add(4.5/sparkColumns, 4)
	s.add(7.0/sparkColumns, 1)
	if got, want := s.String(), "  ██▅▅▅▁"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.add(2, 1) // later than the budget
	if n := len([]rune(s.String())); n != sparkColumns {
		t.Errorf("%d columns, want %d", n, sparkColumns)
	}
}

// TestSparklineIsShown: the text beside the bar has the blocks of the search so far.
func TestSparklineIsShown(t *testing.T) {
	p := progress{total: plan.Budget{Seconds: 160}, told: map[string]float64{}, counts: map[string]int{}, quiet: true}
	for _, e := range []struct{ at, value float64 }{{1, 0.4}, {11, 0.2}, {41, 0.1}} {
		p.observe(search.Event{Method: "anneal", What: search.Progress, Seconds: e.at, Score: plan.Score{Value: e.value}, Decision: plan.Decision{Device: []uint8{0}}})
	}
	if got, want := p.text, "   41 s  best 100 ms █▅▅▅▁ "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
