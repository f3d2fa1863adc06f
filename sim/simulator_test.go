package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/hw"
	"placer/plan"
)

// agree fails unless simulator and oracle give the same makespan, starts, peaks
// and transfers, to the last bit.
func agree(t *testing.T, seed uint64, maxOps, maxDevices int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	p := randomProblem(r, maxOps, maxDevices)
	s := newSimulatorFor(t, p, Default())
	s.record, s.starts = true, make([]float64, p.g.NumOps())
	for range 3 { // a simulator is used again and again
		score := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		want := runOracle(p.g, p.m, p.cost, p.device, p.priority, FIFO)
		if score.Value != want.makespan {
			t.Fatalf("seed %d: %v s, oracle %v s", seed, score.Value, want.makespan)
		}
		if !slices.Equal(s.starts, want.start) {
			t.Fatalf("seed %d: ops start at %v, oracle %v", seed, s.starts, want.start)
		}
		overflow := int64(0)
		for d, peak := range want.peak {
			if s.devs[d].peak != peak {
				t.Fatalf("seed %d: device %d peaks at %d bytes, oracle %d", seed, d, s.devs[d].peak, peak)
			}
			overflow += max(0, peak-int64(p.m.Devices[d].Memory))
		}
		if int64(score.Overflow) != overflow {
			t.Fatalf("seed %d: overflow %d, oracle %d", seed, score.Overflow, overflow)
		}
		if len(s.transfers) != len(want.transfers) {
			t.Fatalf("seed %d: %d transfers, oracle %d", seed, len(s.transfers), len(want.transfers))
		}
		for k, x := range s.transfers {
			y := want.transfers[k]
			msg := s.messages[x.message()]
			if x.start != y.start || x.end != y.end || int(p.device[s.producer[x.message()]]) != y.src || x.dst() != y.what.device || msg.tensor != int32(y.what.tensor) {
				t.Fatalf("seed %d: transfer %d is %+v of tensor %d, oracle %+v", seed, k, x, msg.tensor, y)
			}
		}
		p.device = randomPlacement(r, p.g, p.m.NumDevices())
		if r.IntN(2) == 0 {
			p.priority = randomPriority(r, p.g.NumOps())
		} else {
			p.priority = nil
		}
	}
}

func TestEvaluateAgreesWithOracle(t *testing.T) {
	for seed := range uint64(4000) {
		switch {
		case seed%100 == 0: // more devices than the event loop compares at once
			agree(t, seed, 60, hw.MaxPlaced)
		case seed%8 == 0:
			agree(t, seed, 60, 5)
		default:
			agree(t, seed, 20, 5)
		}
	}
}

func TestSimulatorIsEvaluator(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := randomProblem(r, 60, 5)
	var e plan.Evaluator = newSimulatorFor(t, p, Default())
	c := e.Clone()
	if a, b := e.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}), c.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}); a != b {
		t.Fatalf("clone says %v, original %v", b, a)
	}
	if n := testing.AllocsPerRun(100, func() {
		e.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		e.Evaluate(plan.Decision{Device: p.device})
	}); n != 0 {
		t.Fatalf("Evaluate allocates %v times", n)
	}
}
