package sequential

import (
	"context"
	"errors"
	"slices"
	"testing"

	"placer/baselines/rules"
)

// A graph on which nothing could be placed says nothing of which proposal to make first,
// however near it is: those of the others count, and the nearest of them in full.
func TestUntellingTrials(t *testing.T) {
	x := trials{
		Families: []string{"a", "b", "c"},
		Graphs:   [][]float32{{0, 0}, {40, 0}, {80, 0}},
		Times:    [][]float32{{infeasibleExpert, 2 * infeasibleExpert}, {1, 0.5}, {0.5, 1}},
		Width:    0.25,
	}
	x.read()
	w := x.weights([]float32{0, 0}, nil)
	if w[0] != 0 || w[1] != 1 {
		t.Errorf("weights are %v, want 0 of the graph on which nothing fits and 1 of the next", w)
	}
	if got := choose(x.logs, w, work{of: []float64{1, 1}, needs: [][]int{nil, nil}}, 2); len(got) == 0 || got[0] != 1 {
		t.Errorf("proposals %v come first, want 1", got)
	}
}

// A policy on whose graphs nothing could be placed still proposes as many rollouts as it is
// asked for.
func TestProposedAfterFailedTrials(t *testing.T) {
	f, _ := views(t, small)
	p := policy(t, 8)
	p.tried = trials{
		Families: []string{"a"},
		Graphs:   [][]float32{make([]float32, 2*numUnitFeatures)},
		Times:    [][]float32{slices.Repeat([]float32{2 * infeasibleExpert}, len(allProposals))},
	}
	p.tried.read()
	if samples, err := p.Direct(t.Context(), f, 3); err != nil || len(samples) != 3 {
		t.Errorf("%d samples, error %v, want 3", len(samples), err)
	}
}

// Trying the proposals anew, and being stopped in it, leaves a policy what it knew before.
func TestInterruptedProposeKeepsTrials(t *testing.T) {
	p := policy(t, 8)
	p.tried.Times = [][]float32{{1}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Propose(ctx, quick(), rules.Expert()); !errors.Is(err, context.Canceled) || len(p.tried.Times) != 1 {
		t.Errorf("error %v, %d graphs are left of 1", err, len(p.tried.Times))
	}
}
