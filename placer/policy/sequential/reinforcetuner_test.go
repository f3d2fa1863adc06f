package sequential

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// learner returns a policy with a small encoder as it is before training.
func learner(t *testing.T) *Policy {
	t.Helper()
	p, err := NewPolicy(Config{Hidden: 8, Encoder: DefaultEncoder(8)}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReinforceTuner: fewer than 50 steps of PPO end ahead of the proposals that they
// begin with, within the budget, the same every time, and leave the policy as it was.
func TestReinforceTuner(t *testing.T) {
	p := learner(t)
	f, _ := views(t, Case{Workload: "towers:24,128,1024,2,7", GPU: "p100", Devices: 3})
	before := written(t, p)
	tuner := ReinforceTuner{p, ReinforceConfig{Steps: 24, Samples: 32, Priors: 1, Epochs: 4, Rate: 1e-2, Clip: 0.2}}
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
		if o.Evaluations > 700 || !o.Score.Better(first.Score) {
			t.Errorf("%d evaluations of 700, %v; the proposals came to %v", o.Evaluations, o.Score, first.Score)
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
