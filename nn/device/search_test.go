package device

import (
	"context"
	"testing"

	"placer/hw/gpu/fake"
	"placer/placer/policy/goone"
	"placer/placer/problem"
	"placer/plan"
)

// TestSearch: the learned policy trains on a device as on the CPU, with free
// logits and a curriculum that changes them between stages; two runs agree to the
// bit. Place gives its memory back.
func TestSearch(t *testing.T) {
	whole, err := problem.Workload("rnnlm:layers=2,unroll=3", "p100", 2, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	p.Seed, p.Budget.Evaluations = 3, 24
	var first *plan.Outcome
	for range 2 {
		c := goone.Default()
		c.Samples, c.Epochs, c.Segment = 8, 1, 16
		d := pretended(t, references())
		o := decide(t, p, c, d)
		if n := len(d.driver.(*fake.GPU).Spans()) / 2; n > len(d.rooms) {
			t.Errorf("%d pieces of memory are left after Place, the device's own are %d at most", n, len(d.rooms))
		}
		if score := p.Evaluator.Evaluate(plan.Decision{Device: o.Device, Priority: p.Priority}); score != o.Score || o.Evaluations > 24 {
			t.Errorf("score %v after %d evaluations, evaluated %v", o.Score, o.Evaluations, score)
		}
		if first == nil {
			first = o
		} else if first.Score != o.Score || string(first.Device) != string(o.Device) {
			t.Errorf("score %v, the first run's %v", o.Score, first.Score)
		}
	}
}

func decide(t *testing.T, p *plan.Problem, c goone.Config, d *Device) *plan.Outcome {
	t.Helper()
	policy, err := goone.New(c)
	if err != nil {
		t.Fatal(err)
	}
	policy.Use(d)
	o, err := policy.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
