package robust_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/sim/robust"
	"placer/workloads"
)

func evaluator(t *testing.T, c robust.Config) (*robust.Evaluator, *sim.Simulator, int) {
	t.Helper()
	g, err := workloads.Build("llama:layers=2,hidden=64,heads=4,kv_heads=4,ffn=128,seq=32,vocab=100")
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 3, false)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	e, err := robust.New(g, m, cost, sim.Default(), c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(g, m, cost, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	return e, s, g.NumOps()
}

// TestQuantile: the value is the quantile of the machines' steps, never below the bound,
// the simulator's own where nothing deviates, and the same from a clone.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := robust.Config{Quantile: 0.95, Machines: 40, Error: 0.1, Seed: 3}
	e, s, n := evaluator(t, c)
	none, _, _ := evaluator(t, robust.Config{Quantile: 0.5, Machines: 3, Seed: 3})
	for range 20 {
		d := plan.Decision{Device: make([]uint8, n)}
		for i := range d.Device {
			d.Device[i] = uint8(rng.IntN(3))
		}
		got, steps := e.Evaluate(d), e.Steps(d)
		if !slices.IsSorted(steps) || got.Value != steps[37] {
			t.Fatalf("value %v, steps %v", got.Value, steps)
		}
		if got.Value < e.Bound(false) {
			t.Errorf("value %v is below the bound %v", got.Value, e.Bound(false))
		}
		if again := e.Clone().Evaluate(d); again != got {
			t.Errorf("a clone says %v, not %v", again, got)
		}
		if exact, own := none.Evaluate(d), s.Evaluate(d); math.Abs(exact.Value/own.Value-1) > 1e-12 || exact.Overflow != own.Overflow {
			t.Errorf("without deviation %v, want %v", exact, own)
		}
	}
}

func TestParse(t *testing.T) {
	if c, err := robust.Parse("p95"); err != nil || c.Quantile != 0.95 {
		t.Errorf("p95 is %v, %v", c, err)
	}
	for _, s := range []string{"", "95", "p0", "p101", "px"} {
		if _, err := robust.Parse(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
