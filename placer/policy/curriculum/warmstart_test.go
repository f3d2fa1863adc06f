package curriculum

import (
	"math"
	"testing"

	"placer/nn"
)

// TestLogitOf: a logit that much above equal ones has the chance asked for, and
// what is warm started or biased among four devices is as it is with two.
func TestLogitOf(t *testing.T) {
	for _, n := range []int{2, 4, 8, 64} {
		for _, p := range []float64{0.3, 0.8, 0.947} {
			row, chance := make([]float32, n), make([]float64, n)
			row[n/2] = logitOf(p, n)
			nn.SoftmaxRow(chance, row)
			if math.Abs(chance[n/2]-p) > 1e-6 {
				t.Errorf("%d levels: chance %g, want %g", n, chance[n/2], p)
			}
		}
	}
	for _, n := range []int{2, 4} {
		if logitOf(warmStartProbability, n) > warmStartRange || StartBias(n) != 4 {
			t.Errorf("%d devices: %g and %g are more than the fixed ones", n, logitOf(warmStartProbability, n), StartBias(n))
		}
	}
}
