package sequential

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"placer/plan"
)

// TestTuning: fine-tuning is never worse than zero-shot, keeps to its budget,
// leaves the policy as it was, and gives one plan for one seed and any number of
// workers.
func TestTuning(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	pol := policy(t, 16)
	before := written(t, pol)
	zero, err := Placer{Policy: pol}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	c := quickTune()
	one, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if zero.Score.Better(one.Score) {
		t.Errorf("fine-tuned %v is worse than zero-shot %v", one.Score, zero.Score)
	}
	if got := p.Evaluate(one.Device); got != one.Score {
		t.Errorf("the plan scores %v, not %v", got, one.Score)
	}
	// The first step and the last five have 48 samples, six have 36, for three devices.
	if want := DefaultSamples + 6*48 + 6*36; one.Evaluations != want {
		t.Errorf("%d evaluations, want %d", one.Evaluations, want)
	}
	c.Workers = 3
	two, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one.Device, two.Device) {
		t.Error("one seed gives two plans")
	}
	if !bytes.Equal(before, written(t, pol)) {
		t.Error("fine-tuning changed the policy it started from")
	}
	short, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), budgeted(p, 80))
	if err != nil || short.Evaluations != 80 {
		t.Errorf("%d evaluations of 80, error %v", short.Evaluations, err)
	}
}

// TestTuningWithoutTime: a budget that the zero-shot samples alone would exceed ends them,
// by the problem's clock, whatever time it is.
func TestTuningWithoutTime(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	q, now := *p, 0.0
	q.Clock, q.Budget = func() float64 { now += 1000; return now }, plan.Budget{Seconds: 500}
	_, err = Tuner{Policy: policy(t, 16), Config: quickTune()}.Place(t.Context(), &q)
	if want := "the budget of 500 s was over before the first zero-shot sample"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	// A clock that stands still leaves time for all, however short the budget is.
	c := quickTune()
	c.Steps = 2
	q.Clock, q.Budget = func() float64 { return 0 }, plan.Budget{Seconds: 1e-9, Evaluations: 40}
	if o, err := (Tuner{Policy: policy(t, 16), Config: c}).Place(t.Context(), &q); err != nil || o.Evaluations != 40 {
		t.Errorf("%v, error %v under a clock that stands still, want 40 evaluations", o, err)
	}
}

func quickTune() TuneConfig {
	c := DefaultTune()
	c.Steps, c.Samples = 12, 48
	return c
}

// TestTuningLearns: what is sampled last takes less time than what was sampled
// first at the finest level, and the best less than zero-shot's.
func TestTuningLearns(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultTune()
	c.Steps, c.Samples = 24, 64
	pol := policy(t, 16)
	var mean []float64
	o, err := Tuner{Policy: pol, Config: c, Observe: func(s TuneStep, best plan.Score) error {
		if s.Level == "cell" {
			mean = append(mean, s.Mean)
		}
		if s.Best < best.Value {
			t.Errorf("step %d found %g s, the best is %g", s.Step, s.Best, best.Value)
		}
		return nil
	}}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(mean) < 18 || mean[len(mean)-1] > 0.9*mean[0] {
		t.Errorf("means of the rounds at the finest level: %v", mean)
	}
	zero, err := Placer{Policy: pol}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Score.Value > 0.97*zero.Score.Value {
		t.Errorf("%g s after %g s without learning", o.Score.Value, zero.Score.Value)
	}
}

// TestSparingTuning: a sparing run refuses a time that zero-shot samples would take
// up, and no other.
func TestSparingTuning(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewFeatures(p)
	if err != nil {
		t.Fatal(err)
	}
	q := *p
	q.Clock = func() float64 { return 0 }
	for _, c := range []struct {
		sparing bool
		seconds float64
		refused bool
	}{{true, 1.9 * varied().seconds(w), true}, {true, 2.1 * varied().seconds(w), false}, {true, 0, false}, {false, 0.1 * varied().seconds(w), false}} {
		q.Budget.Seconds = c.seconds
		config := quickTune()
		config.Steps = 2
		// A busy machine may have no time for what is not refused.
		o, err := Tuner{Policy: policy(t, 16), Config: config, Sparing: c.sparing}.Place(context.Background(), &q)
		if refused := err != nil && strings.Contains(err.Error(), "its share of the time"); refused != c.refused {
			t.Errorf("sparing %v with %g s: outcome %v, error %v", c.sparing, c.seconds, o, err)
		}
	}
}

// failing cannot learn.
type failing struct{ crossEntropy }

func (failing) fit(context.Context, *tuning, []*elite, int) error { return errors.New("no gradient") }

// TestTuningThatFails: a learner's error ends the steps, not what was found before them.
func TestTuningThatFails(t *testing.T) {
	p, err := small.Problem()
	must(t, err)
	o, err := Tuner{Policy: policy(t, 16), Config: quickTune()}.place(t.Context(), p, "test", failing{})
	must(t, err)
	if got := p.Evaluator.Evaluate(p.Complete(o.Decision)); got != o.Score || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "learning ended early: no gradient") {
		t.Errorf("%v, the plan takes %v; notes %q", o.Score, got, o.Notes)
	}
}
