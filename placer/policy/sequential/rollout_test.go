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
			full.withFeatures = true
			full.roll(priors, rolling{choose: sampler(make([]float32, len(priors)), nil, s.d), refinements: passes - 1})
			for i, x := range e.greedy(priors) {
				if want := full.states[i]; x.soonest != want.soonest || !slices.Equal(x.best, want.best) {
					t.Errorf("unguided %v, learned %g, prior %d: ends at %g, want %g", unguided, learned, i, x.soonest, want.soonest)
				}
			}
			if e.priorsOnly != (learned == 0) || full.priorsOnly {
				t.Errorf("learned %g: priors only %v, and %v where features are read", learned, e.priorsOnly, full.priorsOnly)
			}
		}
	}
}

// TestStopped: rollouts that are stopped leave the passes that were made: none, or what was
// there after the first.
func TestStopped(t *testing.T) {
	s := instanceOf(t, small)
	p, err := NewPolicy(Config{Hidden: 16}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	priors := heuristics()[:12]
	choose := sampler(make([]float32, len(priors)), nil, s.d)
	once := newRollouts(p.net, s)
	once.roll(priors, rolling{choose: choose})
	for _, looks := range []int{0, s.decisions - 1, s.decisions + 1, s.decisions + 2} {
		left := looks
		e := newRollouts(p.net, s)
		e.stopped = func() bool { left--; return left < 0 }
		greedy := e.greedy(priors)
		left = looks
		again := newRollouts(p.net, s)
		again.stopped = e.stopped
		rolled := again.roll(priors, rolling{choose: choose, refinements: passes - 1})
		want := 0
		if looks > s.decisions { // a look at every decision, and one after the pass
			want = len(priors)
		}
		if len(greedy) != want || len(rolled) != want {
			t.Fatalf("%d and %d rollouts after %d looks, want %d", len(greedy), len(rolled), looks, want)
		}
		for i, x := range greedy {
			if y := once.states[i]; x.soonest != y.soonest || !slices.Equal(x.best, y.best) || rolled[i].soonest != y.soonest || !slices.Equal(rolled[i].best, y.best) {
				t.Errorf("prior %d ends at %g and %g after %d looks, want %g", i, x.soonest, rolled[i].soonest, looks, y.soonest)
			}
		}
	}
}
