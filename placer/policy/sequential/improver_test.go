package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// improved are the cases on which improvers are tried.
func improved() []Case {
	return []Case{small, {Workload: "gnmt:layers=2,source=4,target=4,batch=16,hidden=128,vocab=1000", GPU: "p100", Devices: 4}}
}

// TestImproverKeepsTheOwnSchedule: the improver's schedule of a placement ends when the
// rollouts' does, to the last bit, and beyond a limit only where that end is.
func TestImproverKeepsTheOwnSchedule(t *testing.T) {
	for _, c := range improved() {
		s := instanceOf(t, c)
		x, random := newImprover(s, defaultImprover()), rand.New(rand.NewPCG(1, 1))
		at, device := make([]int32, s.part.NumUnits()), make([]uint8, len(s.part.Of))
		for range 20 {
			for u := range at {
				at[u] = int32(random.IntN(s.d))
			}
			s.place(at, device)
			want := newState(s).scheduled(device)
			if got := x.clock(at, math.Inf(1)); got != want {
				t.Errorf("%v: %v, the rollouts' schedule ends at %v", c, got, want)
			}
			if got := x.clock(at, want*1.0001); got != want {
				t.Errorf("%v: %v within a limit above the end %v", c, got, want)
			}
			if got := x.clock(at, want*0.9999); !math.IsInf(got, 1) {
				t.Errorf("%v: %v within a limit below the end %v", c, got, want)
			}
		}
	}
}

// TestImprover: what it makes of a placement ends no later, fits where the placement did,
// ends when it says, and is the same under the same stream.
func TestImprover(t *testing.T) {
	for _, c := range improved() {
		s := instanceOf(t, c)
		x := newImprover(s, defaultImprover())
		one := make([]int32, s.part.NumUnits())
		before := x.clock(one, math.Inf(1))
		best, soonest := x.improve(t.Context(), slices.Clone(one), 500, rand.New(rand.NewPCG(2, 1)))
		if soonest >= before {
			t.Errorf("%v: one device's schedule ends at %v, improved %v", c, before, soonest)
		}
		if got := x.clock(best, math.Inf(1)); got != soonest {
			t.Errorf("%v: the placement ends at %v, it says %v", c, got, soonest)
		}
		again, _ := x.improve(t.Context(), slices.Clone(one), 500, rand.New(rand.NewPCG(2, 1)))
		if !slices.Equal(again, best) {
			t.Errorf("%v: another placement under the same stream", c)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if at, _ := x.improve(stopped, slices.Clone(one), 500, rand.New(rand.NewPCG(2, 1))); !slices.Equal(at, one) {
			t.Errorf("%v: it goes on behind the end of its context", c)
		}
	}
}

// TestImproverKeepsMemory: no device is given more than it holds.
func TestImproverKeepsMemory(t *testing.T) {
	s := *instanceOf(t, small)
	s.memory = slices.Clone(s.memory)
	for d := range s.memory {
		s.memory[d] = 0
	}
	for _, b := range s.resident {
		s.memory[0] += b // the others hold nothing but units that keep nothing
	}
	best, _ := newImprover(&s, defaultImprover()).improve(t.Context(), make([]int32, s.part.NumUnits()), 2000, rand.New(rand.NewPCG(3, 1)))
	for u, d := range best {
		if d != 0 && s.resident[u] > 0 {
			t.Fatalf("unit %d, which keeps %v, is on device %d", u, s.resident[u], d)
		}
	}
}

// TestZeroShotIsNoWorseThanTheExpert: its placement is among those judged.
func TestZeroShotIsNoWorseThanTheExpert(t *testing.T) {
	for _, c := range improved() {
		f, _ := views(t, c)
		samples, err := policy(t, 3).ZeroShot(t.Context(), f, DefaultSamples)
		if err != nil {
			t.Fatal(err)
		}
		if len(samples) > DefaultSamples {
			t.Errorf("%v: %d samples", c, len(samples))
		}
		expert := Sample{}
		expert.Device = f.coarse.expert
		f.complete(policy(t, 3), &expert)
		if best := Best(samples); expert.Score.Better(best.Score) {
			t.Errorf("%v: %v, the expert has %v", c, best.Score, expert.Score)
		}
	}
}
