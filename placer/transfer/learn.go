package transfer

import "math"

// chunk is the number of decisions of one backward pass: its rows stay in the
// cache.
const chunk = 256

// objective holds PPO's constants.
type objective struct {
	clip    float64
	entropy float64
	prior   float64
}

// reinforce adds the gradient of PPO's clipped objective for the decisions of e,
// whose samples have the given advantages, [K]. Every decision weighs the same,
// 1/(T K).
func (f *pass) reinforce(e *episodes, advantage []float32, o objective) (entropy, clipped float64) {
	s := e.scene
	rows := len(e.of)
	scale := 1 / float32(rows)
	p := make([]float32, s.d)
	prior := make([]float32, s.d)
	f.each(e, func(r int, scores []float32, ok []bool, grad []float32) {
		a := advantage[r%e.k]
		lp := logSoftmaxAt(scores, ok, e.chosen[r])
		ratio := float32(math.Exp(float64(lp - e.logp[r])))
		softmax(scores, ok, p)
		h := float32(0)
		for _, q := range p {
			if q > 0 {
				h -= q * float32(math.Log(float64(q)))
			}
		}
		entropy += float64(h) / float64(rows)
		g := -a * ratio * scale
		if a > 0 && float64(ratio) > 1+o.clip || a < 0 && float64(ratio) < 1-o.clip {
			g = 0
			clipped += 1 / float64(rows)
		}
		for d, q := range p {
			if !ok[d] {
				grad[d] = 0
				continue
			}
			grad[d] = -g * q
			if q > 0 { // entropy falls with its gradient
				grad[d] += float32(o.entropy) * scale * q * (float32(math.Log(float64(q))) + h)
			}
		}
		grad[e.chosen[r]] += g
		if o.prior > 0 {
			f.towardsAdvice(e, r, p, prior, float32(o.prior)*scale, grad)
		}
	})
	return entropy, clipped
}

// towardsAdvice adds the gradient of the divergence, times weight, of decision r's
// probabilities p, [D], from those of the advice alone. What training graphs teach
// beyond the advice has to be worth leaving it, or it would not carry over. prior,
// [D], is scratch.
func (f *pass) towardsAdvice(e *episodes, r int, p, prior []float32, weight float32, grad []float32) {
	d := len(p)
	for i := range prior {
		prior[i] = trust * e.y[(r*d+i)*numDynamic+advised]
	}
	softmax(prior, e.ok[r*d:(r+1)*d], prior)
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

// rare is a probability that does not count.
const rare = 1e-9

// imitate adds the gradient of the cross entropy of e's choices, [T], which a
// teacher made, weighed by weight, [U], and returns the loss and the accuracy.
func (f *pass) imitate(e *episodes, weight []float32) (loss, accuracy float64) {
	s := e.scene
	sum := 0.0
	for _, u := range e.of {
		sum += float64(weight[u])
	}
	p := make([]float32, s.d)
	f.each(e, func(r int, scores []float32, ok []bool, grad []float32) {
		w := weight[e.of[r]] / float32(sum)
		softmax(scores, ok, p)
		best := 0
		for d, q := range p {
			grad[d] = w * q
			if q > p[best] {
				best = d
			}
		}
		grad[e.chosen[r]] -= w
		loss -= float64(w) * math.Log(max(1e-12, float64(p[e.chosen[r]])))
		if int32(best) == e.chosen[r] {
			accuracy += float64(w)
		}
	})
	return loss, accuracy
}

// each runs forward and backward over the decisions of e, a chunk at a time; of
// writes the gradient of row r's scores, [D].
func (f *pass) each(e *episodes, of func(r int, scores []float32, ok []bool, grad []float32)) {
	s := e.scene
	f.units(s.static)
	f.startBackward()
	d, width := s.d, s.d*numDynamic
	grad := make([]float32, chunk*d)
	for lo := 0; lo < len(e.of); lo += chunk {
		hi := min(lo+chunk, len(e.of))
		y := e.y[lo*width : hi*width]
		scores := f.forward(e.of[lo:hi], y, d)
		for r := lo; r < hi; r++ {
			of(r, scores[(r-lo)*d:(r-lo+1)*d], e.ok[r*d:(r+1)*d], grad[(r-lo)*d:(r-lo+1)*d])
		}
		f.backward(e.of[lo:hi], y, grad[:(hi-lo)*d])
	}
	f.unitsBackward(s.static)
}
