package sequential

import "math"

// The gradients here are those of recorded decisions, made one after another, each on scores
// of the D devices. Package ppo has the same objective for policies that decide all nodes at
// once, in double precision; the recorded policies depend on the last bits of these.

// ppoWeights are PPO's constants (arXiv:1707.06347v2, Eq. 7 and 9).
type ppoWeights struct {
	clip    float64 // of the ratio of probabilities
	entropy float64 // of the entropy bonus
	prior   float64 // of the divergence from the heuristic prior
}

// rare is a probability that does not count.
const rare = 1e-9

// ppoGradient adds the gradient of PPO's clipped objective for the decisions of e, whose
// rollouts have the given advantages, [K]. Every decision weighs the same, 1/(T K). It returns
// the mean entropy of a decision, in nats, and the share of decisions that are clipped.
func (e *rollouts) ppoGradient(advantage []float32, w ppoWeights) (entropy, clipped float64) {
	rows := len(e.of)
	scale := 1 / float32(rows)
	p, prior := make([]float32, e.d), make([]float32, e.d)
	e.backpropagate(func(r int, scores []float32, ok []bool, grad []float32) {
		a, chosen := advantage[r%e.k], e.chosen[r]
		ratio := float32(math.Exp(float64(logSoftmaxAt(scores, ok, chosen) - e.logp[r])))
		slope := a * ratio * scale // of the objective by the choice's log probability
		if clips(a, float64(ratio), w.clip) {
			slope = 0
			clipped += 1 / float64(rows)
		}
		softmax(scores, ok, p)
		h := entropyOf(p)
		entropy += float64(h) / float64(rows)
		for d, q := range p {
			if !ok[d] {
				grad[d] = 0
				continue
			}
			grad[d] = slope * q
			if q > 0 { // entropy falls with its gradient
				grad[d] += float32(w.entropy) * scale * q * (float32(math.Log(float64(q))) + h)
			}
		}
		grad[chosen] -= slope
		if w.prior > 0 {
			e.priorProbabilities(r, prior)
			towardsPrior(p, prior, float32(w.prior)*scale, grad)
		}
	})
	return entropy, clipped
}

// entropyOf returns the entropy of probabilities p, in nats.
func entropyOf(p []float32) (h float32) {
	for _, q := range p {
		if q > 0 {
			h -= q * float32(math.Log(float64(q)))
		}
	}
	return h
}

// clips reports whether PPO's clipped objective is flat for an advantage at a ratio of
// probabilities: what helps has gone as far as a step lets it.
func clips(advantage float32, ratio, clip float64) bool {
	return advantage > 0 && ratio > 1+clip || advantage < 0 && ratio < 1-clip
}

// priorProbabilities writes the probabilities of decision r under the prior alone, [D].
func (e *rollouts) priorProbabilities(r int, to []float32) {
	for d := range to {
		to[d] = priorWeight * featuresOf(e.y, r*e.d+d)[priorFeature]
	}
	softmax(to, e.okOf(r), to)
}

// towardsPrior adds the gradient of the divergence, times weight, of probabilities p,
// [D], from those of the prior, which it overwrites. What training graphs teach beyond
// the prior has to be worth leaving it, or it would not carry over.
func towardsPrior(p, prior []float32, weight float32, grad []float32) {
	divergence := float32(0)
	for i, q := range p {
		if q > rare {
			prior[i] = float32(math.Log(float64(q)) - math.Log(float64(prior[i])))
			divergence += q * prior[i]
		}
	}
	for i, q := range p {
		if q > rare {
			grad[i] += weight * q * (prior[i] - divergence)
		}
	}
}

// imitationGradient adds the gradient of the cross entropy of e's choices, [T], which a
// teacher made, weighed by weight, [U], and returns the loss and the accuracy.
func (e *rollouts) imitationGradient(weight []float32) (loss, accuracy float64) {
	sum := 0.0
	for _, u := range e.of {
		sum += float64(weight[u])
	}
	p := make([]float32, e.d)
	e.backpropagate(func(r int, scores []float32, ok []bool, grad []float32) {
		w, chosen := weight[e.of[r]]/float32(sum), e.chosen[r]
		softmax(scores, ok, p)
		best := 0
		for d, q := range p {
			grad[d] = w * q
			if q > p[best] {
				best = d
			}
		}
		grad[chosen] -= w
		loss -= float64(w) * math.Log(max(1e-12, float64(p[chosen])))
		if int32(best) == chosen {
			accuracy += float64(w)
		}
	})
	return loss, accuracy
}

// selfLabelGradient adds the gradient of the cross entropy of the choices of the rollouts in
// best, [K], and of the divergence from the prior, times weight, and returns the mean entropy
// of a decision, in nats.
func (e *rollouts) selfLabelGradient(best []bool, weight float32) (entropy float64) {
	count := 0
	for _, b := range best {
		if b {
			count++
		}
	}
	rows := len(e.of) / e.k * count
	scale := 1 / float32(rows)
	p, prior := make([]float32, e.d), make([]float32, e.d)
	e.backpropagate(func(r int, scores []float32, ok []bool, grad []float32) {
		if !best[r%e.k] {
			clear(grad)
			return
		}
		softmax(scores, ok, p)
		for d, q := range p {
			grad[d] = scale * q
			if q > 0 {
				entropy -= float64(q) * math.Log(float64(q)) / float64(rows)
			}
		}
		grad[e.chosen[r]] -= scale
		if weight > 0 {
			e.priorProbabilities(r, prior)
			towardsPrior(p, prior, weight*scale, grad)
		}
	})
	return entropy
}

// decisionsAbreast is the number of decisions of one backward pass: its rows stay in
// the cache.
const decisionsAbreast = 256

// backpropagate adds the gradient of the network's weights over the recorded decisions, some
// forward and backward at a time; loss writes the gradient of row r's scores into grad, [D].
func (e *rollouts) backpropagate(loss func(r int, scores []float32, ok []bool, grad []float32)) {
	e.pass.encode(e.instance)
	e.pass.startBackward()
	grad := make([]float32, decisionsAbreast*e.d)
	keys := e.recordedKeys()
	for lo := 0; lo < len(e.of) && !e.done(); lo += decisionsAbreast {
		hi := min(lo+decisionsAbreast, len(e.of))
		y, keys := e.featuresOf(lo, hi), keys.rows(lo*e.d, hi*e.d)
		scores := e.pass.forward(e.of[lo:hi], y, keys, e.d)
		for r := lo; r < hi; r++ {
			at, end := (r-lo)*e.d, (r-lo+1)*e.d
			loss(r, scores[at:end], e.okOf(r), grad[at:end])
		}
		e.pass.backward(e.of[lo:hi], y, keys, grad[:(hi-lo)*e.d])
	}
	if e.pass.learnsEmbedding() {
		e.keysBackward(keys)
	}
	e.pass.encodeBackward()
}
