package uncontended_test

import (
	"context"
	"os"
	"testing"

	"placer/baselines/search/uncontended"
	"placer/graph/formats/doppler"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
)

// TestDOPPLER: the chain of products within 0.01% of its bound of 1200.07 ms, and
// the transformer block, with a tenth of the usual steps.
func TestDOPPLER(t *testing.T) {
	for name, most := range map[string]float64{"chain_mm_112nodes": 1.2002, "transformer_block_215nodes": 0.1814} {
		data, err := os.ReadFile("../../../graph/formats/doppler/testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		x, err := doppler.Import(data, name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := x.Times.Machine()
		if err != nil {
			t.Fatal(err)
		}
		cost, err := x.Times.For(m)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(x.Graph, m, cost, sim.Config{Memory: true, Contention: sim.Uncontended})
		if err != nil {
			t.Fatal(err)
		}
		h, err := unit.Find(x.Graph, s.OpSeconds(0))
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Problem{Graph: x.Graph, Machine: m, Units: h, Evaluator: s}
		c := uncontended.Default()
		c.Steps /= 10
		device, _ := uncontended.Search(context.Background(), x.Graph, uncontended.NewClock(p), h.Blocks(s.OpSeconds(0), m.NumDevices()), c, nil)
		if got := s.Evaluate(plan.Decision{Device: device}).Value; got > most || got < float64(s.LowerBound(t.Context()).Seconds) {
			t.Errorf("%s: %v s, want at most %v; bound %v", name, got, most, float64(s.LowerBound(t.Context()).Seconds))
		}
	}
}
