package bench

import (
	"context"
	"testing"
)

// TestNetwork measures a small network on the CPU by a clock that ticks.
func TestNetwork(t *testing.T) {
	now := 0.0
	host := Host{Clock: func() float64 { now += 0.5; return now }}
	f := &Network{Nodes: 40, Devices: 3, Samples: 2, Repeats: 3, Workers: 1, Seed: 1}
	r, err := f.Run(context.Background(), nil, host)
	if err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 40 || len(r.Rates) != 1 || r.Rates[0].Forward != 80 || r.Rates[0].Step != 80 || r.Ratio != 0 {
		t.Errorf("%+v, want 40 nodes in half a second each", r)
	}
	first, err := f.rate(context.Background(), nil, nil, host)
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.rate(context.Background(), nil, first.objective, host)
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
