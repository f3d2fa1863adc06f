package nn

import (
	"math"
	"math/rand/v2"
)

// SoftmaxRow writes the softmax of x into p, which has its length and may be x, and
// returns the logarithm of the denominator, so that log p[i] = x[i] - the result.
// Masked choices get exactly 0. Softmax is for rows that nobody draws from: it is less
// exact, in single precision, and faster.
func SoftmaxRow[T float32 | float64](p []float64, x []T) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	sum := 0.0
	for i, v := range x {
		p[i] = math.Exp(float64(v) - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return top + math.Log(sum)
}

// Draw draws a choice by its probability in p, [A]. One of probability 0 is never drawn;
// -1 says that there is no other, as where p is not finite.
func Draw(p []float64, r *rand.Rand) int32 {
	u, choice := r.Float64(), int32(-1)
	for a, q := range p {
		if q > 0 { // rounding must not leave us at an impossible last choice
			choice = int32(a)
			if u < q {
				break
			}
		}
		u -= q
	}
	return choice
}
