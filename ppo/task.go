package ppo

import (
	"math"

	"placer/nn"
)

// task is the loss of one task of an Objective. Its choices are those from first on in
// a decision, [n]; its logits are [n,A] or, with a block of rows for each sample, [Kn,A].
type task struct {
	*Objective
	logits, gradient nn.Mat
	first, choices   int
}

// loss adds the gradient of the task's part of the loss and returns the sums that
// Combine takes.
func (t *task) loss(c *nn.Context) (sum Stats) {
	var parts [nn.Pieces]Stats // summed in order, whatever the workers
	c.Rows(t.logits.N, func(_, piece int, _ bool, lo, hi int) {
		p, d := make([]float64, t.logits.D), make([]float64, t.logits.D)
		for r := lo; r < hi; r++ {
			t.row(r, p, d, &parts[piece])
		}
	})
	for _, s := range parts {
		sum.add(s)
	}
	return sum
}

// row adds row r's gradient and its terms to s. p and d, [A], are scratch: the row's
// probabilities, and the gradient but for what softmax spreads over all choices.
func (t *task) row(r int, p, d []float64, s *Stats) {
	logits := t.logits.Row(r)
	logZ := nn.SoftmaxRow(p, logits)
	s.Entropy += entropyGradient(d, p, logits, logZ, t.Entropy/float64(t.logits.N))
	scale := 1 / float64(len(t.Actions)*t.choices) // of a sample's term
	spread := 0.0
	first, end := t.samplesOf(r)
	for k := first; k < end; k++ {
		v := t.first + r%t.choices
		a := t.Actions[k][v]
		slope := s.addClipped(float64(logits[a])-logZ-float64(t.LogProb[k][v]), t.advantage(k, v), t.ClipEps)
		d[a] -= scale * slope
		spread += scale * slope
	}
	g := t.gradient.Row(r)
	for i, q := range p {
		g[i] += float32(d[i] + spread*q)
	}
}

// samplesOf returns the samples that row r decides for: all of them where they share
// the logits, else its own.
func (t *task) samplesOf(r int) (first, end int) {
	if t.logits.N == t.choices {
		return 0, len(t.Actions)
	}
	return r / t.choices, r/t.choices + 1
}

// advantage returns that of sample k's choice v.
func (t *task) advantage(k, v int) float64 {
	if len(t.Advantage[k]) > 1 {
		return float64(t.Advantage[k][v])
	}
	return float64(t.Advantage[k][0])
}

// entropyGradient writes the gradient of -weight H(p) with respect to the logits, [A],
// into d and returns H(p) = -sum p log p, in nats. p are the softmax of the logits and
// logZ the logarithm of its denominator.
func entropyGradient(d, p []float64, logits []float32, logZ, weight float64) (entropy float64) {
	for i, q := range p {
		if q > 0 {
			entropy -= q * (float64(logits[i]) - logZ)
		}
	}
	for i, q := range p {
		d[i] = 0
		if q > 0 {
			d[i] = weight * q * (float64(logits[i]) - logZ + entropy)
		}
	}
	return entropy
}

// addClipped adds one sample's choice, of log ratio log ρ, to s and returns the derivative
// of its clipped objective min(ρ A, clip(ρ, 1-ε, 1+ε) A) with respect to the log
// probability (arXiv:1707.06347v2, Eq. 7).
func (s *Stats) addClipped(logRatio, advantage, eps float64) float64 {
	ratio := math.Exp(logRatio)
	objective, slope := ratio*advantage, ratio*advantage
	clipped := min(max(ratio, 1-eps), 1+eps)
	if clipped*advantage < objective {
		objective, slope = clipped*advantage, 0
	}
	s.Loss += objective
	s.KL1 -= logRatio
	s.KL3 += ratio - 1 - logRatio
	if clipped != ratio {
		s.ClipFraction++
	}
	return slope
}
