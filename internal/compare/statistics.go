package compare

import (
	"math"
	"slices"
)

// Median returns the median of xs, the mean of the middle two where their number
// is even. It panics if xs is empty.
func Median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	if s[n/2-1] == s[n/2] {
		return s[n/2] // the mean of infinities of one sign is one of them
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Confidence is the least coverage of Interval.
const Confidence = 0.95

// Interval returns the narrowest interval between order statistics of xs that
// holds the median of their distribution with a probability of at least
// Confidence, whatever the distribution; ok is false for fewer than six values,
// which have none. Coverage of the k-th smallest to the k-th largest of n is
// 1 - 2 P(B < k), B binomial with n and 1/2.
func Interval(xs []float64) (low, high float64, ok bool) {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	tail, term := 0.0, -float64(n)*math.Ln2 // the logarithm of P(B = 0), which is 0 for many values
	k := 0
	for i := range n / 2 {
		tail += math.Exp(term)
		if 1-2*tail < Confidence {
			break
		}
		k = i + 1
		term += math.Log(float64(n-i) / float64(i+1))
	}
	if k == 0 {
		return 0, 0, false
	}
	return s[k-1], s[n-k], true
}

// Reduction returns the share by which ours is shorter than theirs, 1 - ours/theirs.
func Reduction(ours, theirs float64) float64 { return 1 - ours/theirs }

// worse is the share by which ours is longer than theirs, ours/theirs - 1, 0
// where it is not.
func worse(ours, theirs float64) float64 { return max(0, ours/theirs-1) }
