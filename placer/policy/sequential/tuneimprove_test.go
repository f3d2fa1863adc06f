package sequential

import (
	"context"
	"slices"
	"strings"
	"testing"
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
	// It begins with up to 16 zero-shot samples more.
	if more := one.Evaluations - other.Evaluations; more < 1 || more > DefaultSamples {
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
	out, n, err := r.improve(t.Context(), sampled, 12)
	must(t, err)
	if len(out) != 4 || n != 4*12 {
		t.Fatalf("%d improved in %d evaluations, want 4 in 48", len(out), n)
	}
	fresh, all := ranked(sampled), ranked(append(slices.Clone(sampled), r.elite...))
	for i, of := range []*elite{all[0], fresh[0], all[1], fresh[1]} {
		if of.score().Better(out[i].score()) {
			t.Errorf("placement %d was %v and is %v", i, of.score(), out[i].score())
		}
	}
	if out, n, err := r.improve(t.Context(), sampled, 0); len(out) > 0 || n > 0 || err != nil {
		t.Errorf("%d improved by %d evaluations where there were none (%v)", len(out), n, err)
	}
}

// TestImprovementMoves: steps of the second half improve, where their share leaves each
// placement enough evaluations.
func TestImprovementMoves(t *testing.T) {
	r := begun(t, small)
	late := r.pace.Steps - 1
	for _, c := range []struct {
		improvement Improvement
		step, k     int
		want        int
	}{
		{Improvement{Placements: 2, Share: 0.5}, late, 256, 64},
		{Improvement{Placements: 2, Share: 0.5}, late, 32, 8},
		{Improvement{Placements: 2, Share: 0.5}, late, 31, 0},
		{Improvement{Placements: 2, Share: 0.5}, r.pace.Steps / 2, 256, 0},
		{Improvement{Share: 0.5}, late, 256, 0},
	} {
		r.improvement = c.improvement
		if got := r.moves(c.step, c.k); got != c.want {
			t.Errorf("%+v, step %d of %d: %d moves of %d, want %d", c.improvement, c.step, r.pace.Steps, got, c.k, c.want)
		}
	}
	for _, c := range []Improvement{{Placements: -1}, {Share: -0.1}, {Share: 1}} {
		if c.validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
