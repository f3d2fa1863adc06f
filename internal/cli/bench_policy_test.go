package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

// TestBenchPolicy measures a small network on the CPU by a clock that ticks.
func TestBenchPolicy(t *testing.T) {
	var out, errs bytes.Buffer
	now := 0.0
	c := &console{out: &out, err: &errs, clock: func() float64 { now += 0.5; return now }, quiet: true}
	f := &benchPolicyFlags{device: policyDevice{onCPU}, nodes: 40, devices: 3, samples: 2, repeats: 3, workers: 1, seed: 1, json: true}
	if err := c.benchPolicy(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	var r policyRates
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 40 || len(r.Rates) != 1 || r.Rates[0].Forward != 80 || r.Rates[0].Step != 80 || r.Ratio != 0 {
		t.Errorf("%+v, want 40 nodes in half a second each", r)
	}
	first, err := c.policyRate(context.Background(), f, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.policyRate(context.Background(), f, nil, first.objective)
	if err != nil {
		t.Fatal(err)
	}
	if d := apart(first.gradient, second.gradient); d != 0 || len(first.gradient) == 0 {
		t.Errorf("%d numbers of gradient of the same samples differ by %g of their norm", len(first.gradient), d)
	}
	if d := apart([]float32{3, 4}, []float32{3, 5}); d != 0.2 {
		t.Errorf("gradients of norm 5 that differ by 1 are %g apart", d)
	}
}
