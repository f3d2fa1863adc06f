package workloads_test

import (
	"context"
	"testing"

	"placer/baselines/rules"
	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/workloads"
)

// TestHumanPlacementFits: in table 2 of GO every model runs on its number of
// P100s as a human placed it, in 0.19 to 0.99 s. Ours must fit too, and take a
// time of that order.
func TestHumanPlacementFits(t *testing.T) {
	published := map[string]float64{
		"rnnlm2": 0.192, "rnnlm4": 0.239, "rnnlm8": 0.332, "gnmt2": 0.384, "gnmt4": 0.469, "gnmt8": 0.562,
		"trfxl2": 0.268, "trfxl4": 0.27, "trfxl8": 0.46, "inception": 0.312, "inception64": 0.731, "amoebanet": 0.44,
		"wavenet2": 0.376, "wavenet4": 0.988,
	}
	rows := 0
	for _, s := range workloads.List() {
		if s.GPUs == 0 {
			continue
		}
		rows++
		g, err := workloads.Build(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		out, peak := placeByHand(t, g, s.GPUs)
		t.Logf("%-12s %d GPUs: %.3f s, published %.3f s; fullest device %.1f GB", s.Name, s.GPUs, out.Score.Value, published[s.Name], peak)
		if !out.Score.Feasible() {
			t.Errorf("%s: the human placement on %d P100s needs %v more than there is", s.Name, s.GPUs, out.Score.Overflow)
		}
		if x := out.Score.Value / published[s.Name]; x < 0.5 || x > 2 {
			t.Errorf("%s: a step takes %.3f s, in the paper %.3f s", s.Name, out.Score.Value, published[s.Name])
		}
	}
	if rows != len(published) {
		t.Errorf("%d workloads have a number of GPUs, table 2 has %d rows", rows, len(published))
	}
}

// placeByHand returns the human expert's placement under FIFO and the peak memory
// of the fullest device, in GB.
func placeByHand(t *testing.T, g *graph.Graph, gpus int) (*plan.Outcome, float64) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := hw.Take("p100", gpus, false)
	check(err)
	whole, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	check(err)
	p := &whole.Problem
	p.Priority, p.Clock = nil, func() float64 { return 0 }
	out, err := rules.Expert().Place(context.Background(), p)
	check(err)
	r, err := p.Evaluator.(*sim.Simulator).Run(&plan.Plan{Decision: plan.Decision{Device: out.Device}}, sim.Options{})
	check(err)
	peak := 0.0
	for _, b := range r.PeakBytes {
		peak = max(peak, float64(b)/1e9)
	}
	return out, peak
}
