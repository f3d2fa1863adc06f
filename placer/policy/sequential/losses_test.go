package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestGradients compares every weight's gradient of both objectives with finite
// differences, without an encoder and with one.
func TestGradients(t *testing.T) {
	t.Run("decoder", func(t *testing.T) { testGradients(t, policy(t, 6)) })
	t.Run("encoder", func(t *testing.T) { testGradients(t, encoded(t)) })
}

// encoded returns a policy with a small encoder, whose memory is off: through it the
// gradient is not the derivative.
func encoded(t testing.TB) *Policy {
	t.Helper()
	c := Config{Hidden: 6, Encoder: DefaultEncoder(8)}
	c.Encoder.TransformerXL.Segment, c.Encoder.TransformerXL.Memory = 16, 0
	p, err := NewPolicy(c, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.net.last.Value {
		p.net.last.Value[i] *= 30
	}
	for i, last := 0, p.net.params.Lookup("placement.fc2.w"); i < len(last.Value); i++ {
		last.Value[i] *= 10
	}
	return p
}

func testGradients(t *testing.T, p *Policy) {
	s := instanceOf(t, small)
	tr := newTrainer(p, rand.New(rand.NewPCG(5, 5)))
	e := tr.rollouts
	e.on(s)
	e.roll(drawHeuristics(tr.random, 3, perPrior), rolling{choose: sampler([]float32{1, 1, 1}, tr.random, s.d), refinements: 1, record: true})
	advantage := []float32{1, -0.5, 0.3}
	weight := make([]float32, s.part.NumUnits())
	for u := range weight {
		weight[u] = 1 + float32(u%3)
	}
	objectives := map[string]struct {
		value    func() float64
		gradient func()
	}{
		"imitation": {func() float64 { l, _ := e.imitationGradient(weight); return l }, func() { e.imitationGradient(weight) }},
		"ppo": {func() float64 {
			v, h, kl := e.value(advantage)
			return v - 0.01*h + 0.1*kl
		}, func() { e.ppoGradient(advantage, ppoWeights{0.2, 0.01, 0.1}) }},
	}
	for name, o := range objectives {
		t.Run(name, func(t *testing.T) {
			p.net.params.ZeroGrad()
			o.gradient()
			var grads [][]float32 // of all weights: the values below may add to them
			for _, w := range p.net.params.All() {
				grads = append(grads, slices.Clone(w.Grad))
			}
			for k, w := range p.net.params.All() {
				got := grads[k]
				for i := 0; i < len(w.Value); i += 1 + len(w.Value)/12 {
					const h = 1e-2
					was := w.Value[i]
					at := func(x float32) float64 {
						w.Value[i] = x
						p.net.changed()
						return o.value()
					}
					up, down := at(was+h), at(was-h)
					at(was)
					want := (up - down) / (2 * h)
					if math.Abs(want-float64(got[i])) > 2e-3+0.05*math.Abs(want) {
						t.Errorf("%s[%d]: gradient %g, want %g", w.Name, i, got[i], want)
					}
				}
			}
		})
	}
}

// value is PPO's objective near the policy that sampled: the mean of -A ratio, the
// mean entropy, and the mean divergence from the prior.
func (e *rollouts) value(advantage []float32) (objective, entropy, divergence float64) {
	s := e.instance
	e.pass.encode(s)
	scores := slices.Clone(e.pass.forward(e.of, e.y, e.recordedKeys(), s.d))
	p := make([]float32, s.d)
	n := float64(len(e.of))
	for r := range e.of {
		row, ok := scores[r*s.d:(r+1)*s.d], e.ok[r*s.d:(r+1)*s.d]
		lp := logSoftmaxAt(row, ok, e.chosen[r])
		objective -= float64(advantage[r%e.k]) * math.Exp(float64(lp-e.logp[r])) / n
		softmax(row, ok, p)
		prior := make([]float32, s.d)
		for d := range prior {
			prior[d] = priorWeight * e.y[(r*s.d+d)*numDeviceFeatures+priorFeature]
		}
		for d, q := range p {
			if q > 0 {
				entropy -= float64(q) * math.Log(float64(q)) / n
				divergence += float64(q) * (math.Log(float64(q)) - float64(logSoftmaxAt(prior, ok, int32(d)))) / n
			}
		}
	}
	return objective, entropy, divergence
}

// TestClips: what helps has gone far enough, and only on the side to which it helps (PPO,
// Eq. 7; figure 1).
func TestClips(t *testing.T) {
	for _, c := range []struct {
		advantage float32
		ratio     float64
		want      bool
	}{{1, 1.21, true}, {1, 1.19, false}, {1, 0.5, false}, {-1, 0.79, true}, {-1, 0.81, false}, {-1, 2, false}, {0, 5, false}} {
		if got := clips(c.advantage, c.ratio, 0.2); got != c.want {
			t.Errorf("advantage %g at a ratio of %g: clipped is %t", c.advantage, c.ratio, got)
		}
	}
}

// TestClippedDecisionsHaveNoGradient: where every decision has gone far enough there is no
// gradient, and where each has gone the other way there is one.
func TestClippedDecisionsHaveNoGradient(t *testing.T) {
	p := policy(t, 6)
	tr := newTrainer(p, rand.New(rand.NewPCG(5, 5)))
	e := tr.rollouts
	e.on(instanceOf(t, small))
	e.roll(drawHeuristics(tr.random, 2, perPrior), rolling{choose: sampler([]float32{1, 1, 1}, tr.random, 3), refinements: 1, record: true})
	advantage, was := []float32{1, -1}, slices.Clone(e.logp)
	for _, c := range []struct {
		further float32 // of the log probability to where it helps
		clipped float64
	}{{0.5, 1}, {-0.5, 0}} {
		for r := range e.logp {
			e.logp[r] = was[r] - c.further*advantage[r%2]
		}
		p.net.params.ZeroGrad()
		_, clipped := e.ppoGradient(advantage, ppoWeights{clip: 0.2})
		none := true
		for _, w := range p.net.params.All() {
			none = none && !slices.ContainsFunc(w.Grad, func(g float32) bool { return g != 0 })
		}
		if math.Abs(clipped-c.clipped) > 1e-9 || none != (c.clipped == 1) {
			t.Errorf("moved by %g: %g of the decisions are clipped, no gradient: %t", c.further, clipped, none)
		}
	}
}
