package ppo

import (
	"math"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// one returns the loss, without entropy and value, of one node with two choices
// whose choice 0 had probability old and now has probability now.
func one(t *testing.T, now, old, advantage, eps float64) (loss, gradient float64, s Stats) {
	t.Helper()
	o := &Objective{ClipEps: eps, Actions: [][]int32{{0}}, LogProb: [][]float32{{float32(math.Log(old))}}, Advantage: [][]float32{{float32(advantage)}}}
	x := nn.Mat{N: 1, D: 2, V: []float32{float32(math.Log(now / (1 - now))), 0}}
	d := nn.NewMat(1, 2)
	loss = o.Loss(nn.NewContext(nntest.Backends(t)[0]), []nn.Mat{x, nn.NewMat(1, 1)}, []nn.Mat{d, nn.NewMat(1, 1)})
	return loss, float64(d.V[0]), o.Stats
}

// TestClippedSurrogate: arXiv:1707.06347v2, Eq. 7 and figure 1: a positive
// advantage is worth at most (1+ε)A and gives no gradient beyond; a negative one
// costs at least (1-ε)A and gives none below; on the other sides nothing is
// clipped. FACTS: L = mean of min(ρ A, clip(ρ, 1-ε, 1+ε) A).
func TestClippedSurrogate(t *testing.T) {
	cases := []struct {
		name                string
		now, old, advantage float64
		objective           float64
		moves               bool
	}{
		{"same policy", 0.5, 0.5, 2, 2, true},
		{"better, inside", 0.55, 0.5, 2, 2.2, true},
		{"better, beyond", 0.75, 0.5, 2, 2.4, false},
		{"good choice made rare", 0.25, 0.5, 2, 1, true},
		{"worse, inside", 0.45, 0.5, -2, -1.8, true},
		{"worse, beyond", 0.25, 0.5, -2, -1.6, false},
		{"bad choice made likely", 0.75, 0.5, -2, -3, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			loss, gradient, _ := one(t, c.now, c.old, c.advantage, 0.2)
			if math.Abs(-loss-c.objective) > 1e-5 {
				t.Errorf("objective %g, want %g", -loss, c.objective)
			}
			// d(-ρA)/dlogit = -ρ A (1 - now) where nothing is clipped.
			want := 0.0
			if c.moves {
				want = -c.now / c.old * c.advantage * (1 - c.now)
			}
			if math.Abs(gradient-want) > 1e-5 {
				t.Errorf("gradient %g, want %g", gradient, want)
			}
		})
	}
}

// TestDiagnostics: KL1 and KL3 estimate KL(old, new); the share of clipped ratios.
func TestDiagnostics(t *testing.T) {
	_, _, s := one(t, 0.75, 0.5, 1, 0.2)
	if want := math.Log(0.5 / 0.75); math.Abs(s.KL1-want) > 1e-6 {
		t.Errorf("KL1 %g, want %g", s.KL1, want)
	}
	if want := 1.5 - 1 - math.Log(1.5); math.Abs(s.KL3-want) > 1e-6 {
		t.Errorf("KL3 %g, want %g", s.KL3, want)
	}
	if s.ClipFraction != 1 {
		t.Errorf("clip fraction %g, want 1", s.ClipFraction)
	}
	if want := -0.75*math.Log(0.75) - 0.25*math.Log(0.25); math.Abs(s.Entropy-want) > 1e-6 {
		t.Errorf("entropy %g, want %g", s.Entropy, want)
	}
	// Over both choices, drawn as the old policy draws, the two estimates are the
	// divergence itself.
	_, _, other := one(t, 0.25, 0.5, 1, 0.2) // choice 0 at 0.25 is choice 1 of the policy at 0.75
	kl := 0.5*math.Log(0.5/0.75) + 0.5*math.Log(0.5/0.25)
	if got := (s.KL1 + other.KL1) / 2; math.Abs(got-kl) > 1e-6 {
		t.Errorf("mean of KL1 %g, want %g", got, kl)
	}
	if got := (s.KL3 + other.KL3) / 2; math.Abs(got-kl) > 1e-6 {
		t.Errorf("mean of KL3 %g, want %g", got, kl)
	}
}

// TestReward: GO, section 4.1: -sqrt(run time / baseline), -10 if invalid.
func TestReward(t *testing.T) {
	if got := Reward(4, 1); got != -2 {
		t.Errorf("Reward(4, 1) = %g, want -2", got)
	}
	if got := Reward(0.5, 2); got != -0.5 {
		t.Errorf("Reward(0.5, 2) = %g, want -0.5", got)
	}
	if InvalidReward != -10 {
		t.Errorf("InvalidReward = %d, want -10", InvalidReward)
	}
}
