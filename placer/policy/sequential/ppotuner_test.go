package sequential

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// encoding returns a policy with a small encoder as it is before training.
func encoding(t *testing.T) *Policy {
	t.Helper()
	p, err := NewPolicy(Config{Hidden: 8, Encoder: DefaultEncoder(8)}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPPOTuner: PPO ends no worse than the zero-shot samples that it
// begins with, within the budget, the same every time, and leave the policy as it was.
func TestPPOTuner(t *testing.T) {
	p := encoding(t)
	f, _ := views(t, Case{Workload: "rnnlm:layers=2,unroll=6", GPU: "p100", Devices: 3})
	before := written(t, p)
	tuner := PPOTuner{Policy: p, Config: DefaultPPO()}
	tuner.Config.Steps, tuner.Config.Samples = 12, 48
	first, err := tuner.Place(context.Background(), budgeted(f.problem, 16))
	if err != nil {
		t.Fatal(err)
	}
	var again []uint8
	for range 2 {
		o, err := tuner.Place(context.Background(), budgeted(f.problem, 700))
		if err != nil {
			t.Fatal(err)
		}
		if o.Evaluations > 700 || first.Score.Better(o.Score) {
			t.Errorf("%d evaluations of 700, %v; the zero-shot samples came to %v", o.Evaluations, o.Score, first.Score)
		}
		if again != nil && !slices.Equal(again, o.Device) {
			t.Error("the same seed gave two placements")
		}
		again = o.Device
	}
	if !slices.Equal(before, written(t, p)) {
		t.Error("fine-tuning changed the policy")
	}
}

// TestPPOTunerLearns: a few steps of PPO end ahead of what they begin with.
func TestPPOTunerLearns(t *testing.T) {
	p, err := small.Problem()
	must(t, err)
	tuner := PPOTuner{Policy: policy(t, 16), Config: DefaultPPO()}
	tuner.Config.Steps, tuner.Config.Samples = 16, 48
	zero, err := Placer{Policy: tuner.Policy}.Place(context.Background(), p)
	must(t, err)
	o, err := tuner.Place(context.Background(), p)
	must(t, err)
	if o.Score.Value > 0.97*zero.Score.Value {
		t.Errorf("%g s after %g s without learning", o.Score.Value, zero.Score.Value)
	}
}

// TestPPOConfigValidate: every fault is reported, that of the steps too.
func TestPPOConfigValidate(t *testing.T) {
	must(t, DefaultPPO().Validate())
	c := DefaultPPO()
	c.Steps, c.Epochs, c.NetworkRate = 0, 0, -1
	err := c.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"steps is 0", "in 0 epochs", "rate -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
