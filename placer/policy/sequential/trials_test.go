package sequential

import "testing"

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
	if got := choose(x.logs, w, work{of: []float64{1, 1}, level: []int{0, 0}, open: []float64{0}}, 2); len(got) == 0 || got[0] != 1 {
		t.Errorf("proposals %v come first, want 1", got)
	}
}
