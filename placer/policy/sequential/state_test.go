package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStateKeepsSums: after a whole sample the sums that columns are made of are
// those of the placement.
func TestStateKeepsSums(t *testing.T) {
	s := instanceOf(t, small)
	p := policy(t, 8)
	e := newRollouts(p.net, s)
	e.roll(drawHeuristics(rand.New(rand.NewPCG(1, 2)), 2, perPrior), rolling{choose: sampler([]float32{1, 1}, rand.New(rand.NewPCG(2, 2)), s.d), refinements: 2})
	for _, x := range e.states[:2] {
		load := make([]float64, s.d)
		for u, d := range x.device {
			if d == none {
				t.Fatalf("unit %d is not decided", u)
			}
			load[d] += s.work[d][u]
		}
		for d := range load {
			if math.Abs(load[d]-x.load[d]) > 1e-9 {
				t.Errorf("load of device %d is %g, want %g", d, x.load[d], load[d])
			}
			if math.Abs(x.pending[d]) > 1e-9 {
				t.Errorf("the placement refined keeps %g on device %d after all units were decided", x.pending[d], d)
			}
		}
		if x.clock < s.total/float64(s.d)-1e-9 || x.clock > s.total+1 {
			t.Errorf("the schedule ends at %g s, work is %g s", x.clock, s.total)
		}
	}
}

// TestRefinementKnowsItsPlacement: of greedy refinements the soonest counts, and the
// expected loads of one begin with all of the placement's before it.
func TestRefinementKnowsItsPlacement(t *testing.T) {
	s := instanceOf(t, small)
	p := policy(t, 4)
	e := newRollouts(p.net, s)
	ends := []float64{}
	for refinements := range passes {
		e.roll(heuristics()[:1], rolling{choose: sampler([]float32{0}, nil, s.d), refinements: refinements})
		ends = append(ends, e.states[0].clock)
	}
	if got := e.states[0].soonest; got != slices.Min(ends) {
		t.Errorf("the soonest of %v is %g", ends, got)
	}
	x := e.states[0]
	load, device := slices.Clone(x.load), slices.Clone(x.device)
	x.refine()
	if !slices.Equal(x.pending, load) || !slices.Equal(x.previous, device) || slices.Max(x.load) > 0 {
		t.Errorf("pending %v of load %v, load now %v", x.pending, load, x.load)
	}
}
