package sequential

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEncoderSeesTheGraph: what a unit's embedding says depends on units that it does
// not touch, and equal weights give equal embeddings.
func TestEncoderSeesTheGraph(t *testing.T) {
	p, s := encoded(t), instanceOf(t, small)
	before := p.net.encoder.embed(s).Clone()
	p.net.changed()
	if again := p.net.encoder.embed(s); !slices.Equal(before.V, again.V) {
		t.Fatal("equal weights gave two embeddings")
	}
	first, last := s.turn[0], s.turn[15] // of one segment
	s.features[int(last)*numUnitFeatures] += 1
	p.net.changed()
	if after := p.net.encoder.embed(s); slices.Equal(before.Row(int(first)), after.Row(int(first))) {
		t.Error("the embedding of the first unit does not see the last of its segment")
	}
}

// TestHeldKeys: the keys that a rollout kept while it decided are those that learning
// makes of its record.
func TestHeldKeys(t *testing.T) {
	p, s := encoded(t), instanceOf(t, small)
	random := rand.New(rand.NewPCG(1, 2))
	e := newRollouts(p.net, s)
	for _, refinements := range []int{0, 2} {
		e.roll(drawHeuristics(random, 4, perPrior), refinements, true, sampler([]float32{1, 1, 1, 1}, random, s.d))
		scores := slices.Clone(e.logp)
		y := e.recordedKeys()
		all := e.pass.forward(e.of, e.y, y, s.d)
		for r := range e.of {
			got := logSoftmaxAt(all[r*s.d:(r+1)*s.d], e.okOf(r), e.chosen[r])
			if d := got - scores[r]; d > 1e-4 || d < -1e-4 {
				t.Fatalf("%d refinements, decision %d: log probability %g, was %g", refinements, r, got, scores[r])
			}
		}
	}
}

// TestChoose takes what is best alone first, then what helps most beside it, and stops
// where nothing helps.
func TestChoose(t *testing.T) {
	times := [][]float64{
		{1, 2, 0.9, 4},
		{1, 0.5, 3, 4},
		{1, 3, 0.5, 4},
	}
	if got, want := choose(times, 4), []int{0, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("chose %v, want %v", got, want)
	}
	if got := choose(times, 1); !slices.Equal(got, []int{0}) {
		t.Errorf("chose %v, want the best alone", got)
	}
	if got := choose(nil, 3); got != nil {
		t.Errorf("chose %v of nothing", got)
	}
}

// TestDirect: every proposal is judged, and the same policy makes the same ones.
func TestDirect(t *testing.T) {
	p := encoded(t)
	f, _ := views(t, small)
	a, err := p.Direct(context.Background(), f, 5)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Direct(context.Background(), f, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i].Score.Value <= 0 || !slices.Equal(a[i].Device, b[i].Device) {
			t.Errorf("proposal %d: %v and %v", i, a[i].Score, b[i].Score)
		}
	}
	if len(a) != 5 {
		t.Errorf("%d proposals, want 5", len(a))
	}
}
