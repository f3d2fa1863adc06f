package sequential

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestImprovedTuning: improvements are evaluations of a step as its samples are, and do not
// depend on the number of workers; coarsened steps are noted.
func TestImprovedTuning(t *testing.T) {
	p, err := small.Problem()
	must(t, err)
	tuner := ReinforceTuner{Policy: policy(t, 16), Config: DefaultReinforce()}
	tuner.Config.Steps, tuner.Config.Samples = 3, 64
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
	if len(one.Notes) != 1 || !strings.Contains(one.Notes[0], "of a coarsened graph") || len(other.Notes) != 0 {
		t.Errorf("notes %q with improvements, %q without", one.Notes, other.Notes)
	}
	tuner.Config.Workers = 3
	two, err := tuner.Place(context.Background(), p)
	must(t, err)
	if !slices.Equal(one.Device, two.Device) || !slices.Equal(one.Notes, two.Notes) || one.Evaluations != two.Evaluations {
		t.Errorf("three workers give another plan, %v after %d evaluations %q: one gave %v after %d %q", two.Score, two.Evaluations, two.Notes, one.Score, one.Evaluations, one.Notes)
	}
	if got := p.Evaluate(one.Device); got != one.Score {
		t.Errorf("the plan scores %v, not %v", got, one.Score)
	}
}

// TestImprove: by turns the best of all and the best of a step are improved, none comes to
// more than it was, and every evaluation counts.
func TestImprove(t *testing.T) {
	r := begun(t, small)
	r.improvement = Improvement{Placements: 4, Share: 0.5, Coarsened: 1, Nodes: 1e6}
	must(t, r.startLevel(t.Context(), 0))
	sampled, _, err := r.sample(t.Context(), 24)
	must(t, err)
	r.elite = r.zeroShotElite(func(int) bool { return true })
	before := slices.Clone(r.elite)
	for _, moves := range []int{0, 12} {
		out, n, err := r.improve(t.Context(), sampled, moves)
		must(t, err)
		if moves == 0 {
			if len(out) > 0 || n > 0 {
				t.Errorf("%d improved by %d evaluations where there were none", len(out), n)
			}
			continue
		}
		if len(out) != 4 || n > r.improvement.of(moves) || n < 4*2 {
			t.Errorf("%d improved in %d evaluations, want 4 in at most %d", len(out), n, r.improvement.of(moves))
		}
		fresh, all := ranked(sampled), ranked(append(slices.Clone(sampled), before...))
		for i, of := range []*elite{all[0], fresh[0], all[1], fresh[1]} {
			if of.score().Better(out[i].score()) {
				t.Errorf("placement %d was %v and is %v", i, of.score(), out[i].score())
			}
		}
	}
}

// TestImprovementMoves: a share that leaves each placement too few evaluations improves none.
func TestImprovementMoves(t *testing.T) {
	c := Improvement{Placements: 2, Share: 0.5}
	for k, want := range map[int]int{256: 64, 32: 8, 31: 0} {
		if got := c.moves(k); got != want || want > 0 && c.of(got) != 2*(want+1) {
			t.Errorf("%d evaluations: %d moves for each, %d in all, want %d", k, got, c.of(got), want)
		}
	}
	if c.of(0) != 0 || (Improvement{}).moves(256) != 0 {
		t.Error("evaluations where nothing is improved")
	}
	for _, c := range []Improvement{{Placements: -1}, {Share: 1}, {Coarsened: -1}, {Nodes: -1}} {
		if c.validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
