package sequential

import (
	"math"
	"slices"
	"testing"

	"placer/plan"
	"placer/units"
)

// TestRelative: times over the expert's, within bounds, for what does not fit or run too.
func TestRelative(t *testing.T) {
	s := &instance{memory: []units.Bytes{100}}
	for _, c := range []struct {
		score plan.Score
		want  float64
	}{{plan.Score{Value: 3}, 1.5}, {plan.Score{Value: 99}, 5}, {plan.Score{Value: 1, Overflow: 50}, 4.5}, {plan.Score{Value: 1, Overflow: 1000}, 5}, {plan.Score{Value: math.Inf(1)}, 3}} {
		if got := relative(c.score, s, 2); got != c.want {
			t.Errorf("%+v is %g of the expert's, want %g", c.score, got, c.want)
		}
	}
}

// TestRewards: the negative square root of times (GO, section 4.1).
func TestRewards(t *testing.T) {
	if got := rewards([]float64{4, 0.25}); !slices.Equal(got, []float32{-2, -0.5}) {
		t.Errorf("rewards of 4 and a quarter are %v", got)
	}
}
