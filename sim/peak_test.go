package sim

import (
	"math/rand/v2"
	"placer/plan"
	"testing"
)

// TestPeakIsTheSimulators: the objective is the peak that a full run reports,
// and the bound is not above it.
func TestPeakIsTheSimulators(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := randomProblem(r, 20, 4)
		s := newSimulatorFor(t, p, Default())
		want := runOracle(p.g, p.m, p.cost, p.device, p.priority, FIFO)
		var most int64
		for _, b := range want.peak {
			most = max(most, b)
		}
		e := NewPeak(s)
		if got := e.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}).Value; got != float64(most) || e.Clone().Evaluate(plan.Decision{Device: p.device, Priority: p.priority}).Value != got {
			t.Fatalf("seed %d: peak %v, oracle %d", seed, got, most)
		}
		if b := PeakBound(p.g, p.m.NumDevices()); int64(b) > most {
			t.Fatalf("seed %d: bound %d above the peak %d", seed, b, most)
		}
	}
}
