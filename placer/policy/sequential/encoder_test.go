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
		e.roll(drawHeuristics(random, 4, perPrior), rolling{choose: sampler([]float32{1, 1, 1, 1}, random, s.d), refinements: refinements, record: true})
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
// where nothing helps; a graph of no weight counts nothing.
func TestChoose(t *testing.T) {
	x := trials{Times: [][]float32{
		{1, 2, 0.9, 4},
		{1, 0.6, 3, 4},
		{1, 3, 0.6, 4},
	}}
	x.read()
	all := []float64{1, 1, 1}
	like := work{of: []float64{1, 1, 1, 1}, needs: make([][]int, 4)}
	if got, want := choose(x.logs, all, like, 4), []int{0, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("chose %v, want %v", got, want)
	}
	if got := choose(x.logs, all, like, 1); !slices.Equal(got, []int{0}) {
		t.Errorf("chose %v, want the best alone", got)
	}
	if got := choose(x.logs, []float64{0, 1, 0}, like, 4); !slices.Equal(got, []int{1}) {
		t.Errorf("chose %v where the second graph alone counts, want 1", got)
	}
	if got := choose(nil, nil, like, 3); got != nil {
		t.Errorf("chose %v of nothing", got)
	}
}

// TestTrialsNear: near graphs count more, and where there are more kinds of graphs than
// placements, and each kind of two families has one proposal that is good, leaving
// families out finds that near ones should count.
func TestTrialsNear(t *testing.T) {
	const kinds = DefaultSamples + 4
	x := trials{}
	at := func(v float32) []float32 { return slices.Repeat([]float32{v}, 2*numUnitFeatures) }
	for g := range 2 * kinds {
		row := slices.Repeat([]float32{1}, len(proposals()))
		row[g%kinds] = 0.5
		x.Families, x.Graphs, x.Times = append(x.Families, string(rune('a'+g))), append(x.Graphs, at(3*float32(g%kinds))), append(x.Times, row)
	}
	x.Width = 1
	x.read()
	like := work{of: slices.Repeat([]float64{1}, len(proposals())), needs: make([][]int, len(proposals()))}
	x.Cuts, x.works = make([]float64, 2*kinds), slices.Repeat([]work{like}, 2*kinds)
	w := x.weights(at(0), nil)
	if w[0] <= w[1] || w[1] <= w[2] {
		t.Errorf("weights %v do not fall with distance", w[:3])
	}
	if w := x.weights(at(0), func(f string) bool { return f == "a" }); w[0] != 0 || w[kinds] == 0 {
		t.Error("what is left out counts, or its kin do not")
	}
	x.fit()
	if x.Width == 0 {
		t.Error("all graphs count the same")
	}
	if err := x.validate(); err != nil {
		t.Error(err)
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
