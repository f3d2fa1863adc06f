package sequential

import (
	"slices"
	"testing"
)

// TestSelectElite: the best of a step and of those that are not too old, one of each score,
// the younger one.
func TestSelectElite(t *testing.T) {
	of := func(seconds float64, born int) *elite { return &elite{kept: kept{placement{Seconds: seconds}, born}} }
	r := begun(t, small)
	r.state.Step = 9
	oldest := 9 - r.pace.oldest
	r.elite = []*elite{of(1, oldest-1), of(2, oldest), of(4, 8)}
	r.selectElite([]*elite{of(4, 9), of(3, 9), of(5, 9)}, 3)
	var got []float64
	for _, x := range r.elite {
		got = append(got, x.Seconds)
	}
	if !slices.Equal(got, []float64{2, 3, 4}) || r.elite[2].Born != 9 {
		t.Errorf("kept %v, the last of step %d", got, r.elite[2].Born)
	}
}
