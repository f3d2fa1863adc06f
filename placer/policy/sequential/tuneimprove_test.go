package sequential

import (
	"context"
	"slices"
	"strings"
	"testing"

	"placer/plan"
)

// TestImprovedTuning: improvements are evaluations of a step as its samples are, and do not
// depend on the number of workers; what zero-shot samples and improvements took besides is noted.
func TestImprovedTuning(t *testing.T) {
	p, err := small.Problem()
	must(t, err)
	tuner := PPOTuner{Policy: policy(t, 16), Config: DefaultPPO()}
	tuner.Config.Steps, tuner.Config.Samples = 4, 64
	one, err := tuner.Place(context.Background(), p)
	must(t, err)
	plain := tuner
	plain.Config.Improvement = Improvement{}
	other, err := plain.Place(context.Background(), p)
	must(t, err)
	// It begins with up to 16 zero-shot samples more, and improvements by three quarters of a step.
	if more := one.Evaluations - other.Evaluations; more <= DefaultSamples || more > DefaultSamples+48 {
		t.Errorf("%d evaluations with improvements, %d without", one.Evaluations, other.Evaluations)
	}
	if len(one.Notes) != 2 || !strings.Contains(one.Notes[0], "of a coarsened graph") || !strings.Contains(one.Notes[1], "moves on the coarsened graph") || len(other.Notes) != 0 {
		t.Errorf("notes %q with improvements, %q without", one.Notes, other.Notes)
	}
	tuner.Config.Workers = 3
	two, err := tuner.Place(context.Background(), p)
	must(t, err)
	if !slices.Equal(one.Device, two.Device) || one.Evaluations != two.Evaluations || !slices.Equal(one.Notes, two.Notes) {
		t.Errorf("three workers give another plan, %v after %d evaluations, %q: one gave %v after %d, %q", two.Score, two.Evaluations, two.Notes, one.Score, one.Evaluations, one.Notes)
	}
	if got := p.Evaluate(one.Device); got != one.Score {
		t.Errorf("the plan scores %v, not %v", got, one.Score)
	}
}

// TestImprove: by turns the best of all and the best of a step are improved, none comes to
// more than it was, and every evaluation counts.
func TestImprove(t *testing.T) {
	r := begun(t, small)
	r.improvement = Improvement{Placements: 4, Share: 0.5}
	must(t, r.startLevel(t.Context(), 0))
	sampled, _, err := r.sample(t.Context(), 24)
	must(t, err)
	r.elite = r.zeroShotElite(func(level) bool { return true })
	before := r.state.Evaluations
	out, err := r.improve(t.Context(), sampled, 12)
	must(t, err)
	if n := r.state.Evaluations - before; len(out) != 4 || n != 4*12 {
		t.Fatalf("%d improved in %d evaluations, want 4 in 48", len(out), n)
	}
	fresh, all := ranked(sampled), ranked(append(slices.Clone(sampled), r.elite...))
	for i, of := range []*elite{all[0], fresh[0], all[1], fresh[1]} {
		if of.score().Better(out[i].score()) {
			t.Errorf("placement %d was %v and is %v", i, of.score(), out[i].score())
		}
	}
	before = r.state.Evaluations
	if out, err := r.improve(t.Context(), sampled, 0); len(out) > 0 || r.state.Evaluations > before || err != nil {
		t.Errorf("%d improved where there were no evaluations for it (%v)", len(out), err)
	}
}

// TestImprovementMoves: the share of a step is divided among the placements that are
// improved, where that leaves each enough evaluations.
func TestImprovementMoves(t *testing.T) {
	for _, c := range []struct {
		improvement Improvement
		k, want     int
	}{
		{Improvement{Placements: 2, Share: 0.5}, 256, 64},
		{Improvement{Placements: 2, Share: 0.5}, 32, 8},
		{Improvement{Placements: 2, Share: 0.5}, 31, 0},
		{Improvement{Share: 0.5}, 256, 0},
	} {
		if got := c.improvement.moves(c.k); got != c.want {
			t.Errorf("%+v: %d moves of %d, want %d", c.improvement, got, c.k, c.want)
		}
	}
	for _, c := range []Improvement{{Placements: -1}, {Share: -0.1}, {Share: 1}} {
		if c.validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestOpening: before the first step the best zero-shot sample is improved, by evaluations
// that count. The steps are those of a run that was not opened.
func TestOpening(t *testing.T) {
	r, plain := begun(t, small), begun(t, small)
	c := DefaultPPO().Improvement
	r.improvement, plain.improvement = c, c
	zeroShot := r.state.score()
	k, before := r.pace.samples(r.state), r.state.Evaluations
	if err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.state.Evaluations - before; n < 1 || n > int(c.Share*float64(k)) {
		t.Errorf("%d evaluations, want some, and %g of %d at most", n, c.Share, k)
	}
	if !r.state.score().Better(zeroShot) {
		t.Errorf("%v, no better than zero-shot: %v", r.state.score(), zeroShot)
	}
	if len(r.elite) > 0 {
		t.Errorf("%d placements are learned from", len(r.elite))
	}
	opened := r.state.score()
	for range 3 {
		for _, x := range []*tuning{r, plain} {
			if _, err := x.advance(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a, b := r.scores(), plain.scores(); !slices.Equal(a, b) {
		t.Errorf("the elite of a run that was opened is %v, of one that was not %v", a, b)
	}
	if r.state.score() != opened && r.state.score() != plain.state.score() {
		t.Errorf("the best is %v, neither the opening's %v nor the steps' %v", r.state.score(), opened, plain.state.score())
	}
}

// scores are those of the elite.
func (r *tuning) scores() (all []plan.Score) {
	for _, x := range r.elite {
		all = append(all, x.score())
	}
	return all
}
