package reinforce

import (
	"math"
	"testing"

	"placer/plan"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// TestSignal follows two rounds by hand: R = sqrt(time / serial) or the failing
// signal, advantage b - R with b from before the round, b <- 0.9 b + 0.1 mean R.
func TestSignal(t *testing.T) {
	s := NewSignal(SignalConfig{Failing: 3, Decay: 0.9, OnlyFitting: 1}, 4)
	a := make([]float32, 2)
	// Costs 1 and, as it does not fit, 3; the baseline starts at 3.
	if !s.Advantages([]plan.Score{{Value: 4}, {Value: 1, Overflow: 1}}, a) {
		t.Error("a round that fits in part does not count")
	}
	near(t, "advantage", float64(a[0]), 2)
	near(t, "advantage of what does not fit", float64(a[1]), 0)
	near(t, "baseline", s.Baseline(), 0.9*3+0.1*2)
	// From now on only what fits counts: cost 2 of 16 seconds.
	s.Advantages([]plan.Score{{Value: 16}, {Value: 1, Overflow: 1}}, a)
	near(t, "advantage", float64(a[0]), 2.9-2)
	near(t, "advantage of what no longer counts", float64(a[1]), 0)
	near(t, "baseline", s.Baseline(), 0.9*2.9+0.1*2)
	if s.Advantages([]plan.Score{{Overflow: 1}, {Overflow: 2}}, a) {
		t.Error("a round in which nothing fits counts")
	}
	near(t, "baseline", s.Baseline(), 0.9*2.9+0.1*2)
}

func TestSignalBeforeOnlyFitting(t *testing.T) {
	s := NewSignal(DefaultSignal(), 1)
	a := make([]float32, 1)
	s.Advantages([]plan.Score{{Value: 1}}, a)
	if !s.Advantages([]plan.Score{{Value: 1, Overflow: 1}}, a) || !(a[0] < 0) {
		t.Errorf("a failing placement has advantage %g, want below 0", a[0])
	}
}

func TestFirstMean(t *testing.T) {
	c := DefaultSignal()
	c.FirstMean = true
	s := NewSignal(c, 1)
	a := make([]float32, 2)
	s.Advantages([]plan.Score{{Value: 1}, {Value: 9}}, a)
	near(t, "advantage of cost 1", float64(a[0]), 1)
	near(t, "advantage of cost 3", float64(a[1]), -1)
	near(t, "baseline", s.Baseline(), 2)
}

func TestSignalConfigRefuses(t *testing.T) {
	for _, c := range []SignalConfig{{Failing: 0, Decay: 0.9}, {Failing: 1, Decay: 1}, {Failing: 1, Decay: math.NaN()}, {Failing: 1, OnlyFitting: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestSamples(t *testing.T) {
	for _, c := range []struct{ evaluations, most, want int }{{0, 16, 16}, {1000, 16, 16}, {64, 16, 8}, {1, 16, 2}} {
		if got := Samples(&plan.Problem{Budget: plan.Budget{Evaluations: c.evaluations}}, c.most); got != c.want {
			t.Errorf("%d samples for %d evaluations, want %d", got, c.evaluations, c.want)
		}
	}
}
