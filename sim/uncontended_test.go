package sim

import (
	"math/rand/v2"
	"placer/plan"
	"testing"
)

var aloneConfig = Config{Memory: true, Contention: Uncontended}

// TestUncontendedAgreesWithOracle: bit for bit, with transfers that overlap on a
// link among them.
func TestUncontendedAgreesWithOracle(t *testing.T) {
	overlapping := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 16))
		p := randomProblem(r, 30, 5)
		s := newSimulatorFor(t, p, aloneConfig)
		s.record, s.starts = true, make([]float64, p.g.NumOps())
		score := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		want := runOracle(p.g, p.m, p.cost, p.device, p.priority, Uncontended)
		if score.Value != want.makespan {
			t.Fatalf("seed %d: %v s, oracle %v s", seed, score.Value, want.makespan)
		}
		for i := range s.starts {
			if s.starts[i] != want.start[i] {
				t.Fatalf("seed %d: op %d starts at %v, oracle %v", seed, i, s.starts[i], want.start[i])
			}
		}
		for d, peak := range want.peak {
			if s.devs[d].peak != peak {
				t.Fatalf("seed %d: device %d peaks at %d, oracle %d", seed, d, s.devs[d].peak, peak)
			}
		}
		for k, x := range want.transfers {
			for _, y := range want.transfers[:k] {
				if x.src == y.src && x.what.device == y.what.device && x.start < y.end && y.start < x.end {
					overlapping++
				}
			}
		}
		queued := newSimulatorFor(t, p, Default())
		if seed%10 == 0 && len(want.transfers) == 0 && queued.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}) != score {
			t.Fatalf("seed %d: without transfers the models differ", seed)
		}
	}
	if overlapping < 1000 {
		t.Errorf("%d transfers overlapped on their route, too few for a test", overlapping)
	}
}
