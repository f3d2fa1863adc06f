package vec

import (
	"math/rand/v2"
	"testing"
)

// TestExpAVX2 checks the form that machines with AVX-512 use for short rests only.
func TestExpAVX2(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	x := random(rand.New(rand.NewPCG(1, 2)), 800, 20)
	x[3], x[10] = -1e9, 1e9
	y, want := make([]float32, len(x)), make([]float32, len(x))
	got := expShiftSumAVX2(&y[0], &x[0], len(x), 0.7, 1)
	sum := expShiftSumScalar(want, x, 0.7, 1)
	near(t, "exp", len(x), y, want)
	if e := got/sum - 1; e > 1e-6 || e < -1e-6 {
		t.Errorf("sum %g, want %g", got, sum)
	}
}
