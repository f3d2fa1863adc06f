package compare_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/internal/compare"
)

// coverage sums the chance that the median lies between order statistics k and
// n+1-k over all 2^n ways in which values fall on either side of it.
func coverage(n, k int) float64 {
	inside := 0
	for ways := range 1 << n {
		below := 0
		for i := range n {
			below += ways >> i & 1
		}
		if below >= k && n-below >= k {
			inside++
		}
	}
	return float64(inside) / float64(int(1)<<n)
}

func TestIntervalIsNarrowestThatCovers(t *testing.T) {
	for n := 1; n <= 16; n++ {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		best := 0
		for k := 1; k <= n/2; k++ {
			if coverage(n, k) >= compare.Confidence {
				best = k
			}
		}
		low, high, ok := compare.Interval(xs)
		if ok != (best > 0) || ok && (low != float64(best) || high != float64(n+1-best)) {
			t.Errorf("%d values: %v to %v, %v; want the %d-th from either end", n, low, high, ok, best)
		}
	}
	// Of many values the binomial is near the normal distribution: half of 5,000 less 1.96
	// times their standard deviation.
	many := make([]float64, 5000)
	for i := range many {
		many[i] = float64(i + 1)
	}
	if low, high, ok := compare.Interval(many); !ok || math.Abs(low-(2500-0.98*math.Sqrt(5000))) > 2 || high != 5001-low {
		t.Errorf("5000 values: %v to %v, %v", low, high, ok)
	}
	if _, _, ok := compare.Interval(make([]float64, 5)); ok {
		t.Error("five values have an interval")
	}
	if low, high, ok := compare.Interval([]float64{6, 1, 5, 2, 4, 3}); !ok || low != 1 || high != 6 {
		t.Errorf("six values: %v to %v, want the least and the largest", low, high)
	}
}

func TestMedianHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 30).Draw(t, "xs")
		before := slices.Clone(xs)
		m := compare.Median(xs)
		below, above := 0, 0
		for _, x := range xs {
			if x < m {
				below++
			} else if x > m {
				above++
			}
		}
		if 2*below > len(xs) || 2*above > len(xs) {
			t.Fatalf("median %v of %v has %d below and %d above", m, xs, below, above)
		}
		if !slices.Equal(xs, before) {
			t.Fatal("Median changed its argument")
		}
	})
	inf := math.Inf(1)
	if m := compare.Median([]float64{1, inf, inf, 2}); m != inf {
		t.Errorf("median with half of the trials failed is %v", m)
	}
}
