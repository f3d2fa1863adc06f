package sequential

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProposalTemperature: choices are drawn from the logits over the temperature, which a
// perturbation adds to.
func TestProposalTemperature(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		temperature, strength float32
	}{{0.5, 0}, {2, 0}, {2, 1}} {
		x := &proposal{random: rand.New(rand.NewPCG(1, 2)), temperature: c.temperature, strength: c.strength, perturbations: []perturbation{{device: 1}}}
		count, p := 0, make([]float32, 2)
		for range n {
			if x.choose(0, []float32{1, 0}, []bool{true, true}, p) == 0 {
				count++
			}
		}
		want := 1 / (1 + math.Exp(float64(c.strength-1/c.temperature)))
		if got := float64(count) / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("temperature %g, strength %g: the first device is drawn in %g, want %g", c.temperature, c.strength, got, want)
		}
	}
}
