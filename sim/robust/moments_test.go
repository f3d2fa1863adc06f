package robust

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFitted: where logarithms lean to the right, the quantile is within 0.5% of that of a great
// many, where the log-normal distribution with the same two moments is short of it.
func TestFitted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const sigma = 0.1
	steps := make([]float64, 200_000)
	for k := range steps {
		steps[k] = math.Exp(sigma * (rng.NormFloat64() + 0.6*rng.ExpFloat64()))
	}
	for _, q := range []float64{0.95, 0.99} {
		of, m := Quantile(steps, q), momentsOf(steps)
		third, second := math.Abs(math.Log(fitted(steps, q)/of)), math.Abs(m.mean+normal(q)*m.deviation-math.Log(of))
		if third > 0.005 || third > second {
			t.Errorf("p%g is %v, %v off by three moments, %v by two", 100*q, of, third, second)
		}
	}
}

// TestInfluence: the influence of each machine is the derivative of the quantile by its step.
func TestInfluence(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		steps := make([]float64, 10+rng.IntN(40))
		for k := range steps {
			steps[k] = math.Exp(0.1 * (rng.NormFloat64() + 0.3*rng.ExpFloat64()))
		}
		for _, q := range []float64{0.5, 0.95, 0.999} {
			m, n := momentsOf(steps), float64(len(steps))
			for k := range steps {
				const h = 1e-6
				up, down := slices.Clone(steps), slices.Clone(steps)
				up[k] *= math.Exp(h)
				down[k] *= math.Exp(-h)
				want := math.Log(fitted(up, q)/fitted(down, q)) / (2 * h) * n
				if got := m.influence(math.Log(steps[k]), q); math.Abs(got-want) > 1e-4 {
					t.Fatalf("q %v, step %v of %d: influence %v, want %v", q, steps[k], len(steps), got, want)
				}
			}
		}
	}
}
