package sequential

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGreedy: greedy rollouts, which ask no network where nothing is learned and end when
// nothing changes, get where all passes through the network do, with guides and without.
func TestGreedy(t *testing.T) {
	s := instanceOf(t, small)
	for _, unguided := range []bool{false, true} {
		p, err := NewPolicy(Config{Hidden: 16, Unguided: unguided}, rand.New(rand.NewPCG(3, 1)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.net.last.Value {
			p.net.last.Value[i] *= 30
		}
		for _, learned := range []float32{0, 1} {
			priors := heuristics()[:12]
			for i := range priors {
				priors[i].learned = learned
			}
			e, full := newRollouts(p.net, s), newRollouts(p.net, s)
			full.read = true
			full.roll(priors, passes-1, false, sampler(make([]float32, len(priors)), nil, s.d))
			for i, x := range e.greedy(priors) {
				if want := full.states[i]; x.soonest != want.soonest || !slices.Equal(x.best, want.best) {
					t.Errorf("unguided %v, learned %g, prior %d: ends at %g, want %g", unguided, learned, i, x.soonest, want.soonest)
				}
			}
			if e.muted != (learned == 0) || full.muted {
				t.Errorf("learned %g: muted %v, and %v where features are read", learned, e.muted, full.muted)
			}
		}
	}
}
