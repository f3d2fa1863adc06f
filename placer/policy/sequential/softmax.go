package sequential

import (
	"math"
	"math/rand/v2"

	"placer/nn/vec"
)

// These are not nn.SoftmaxRow and nn.Draw: they are in single precision, of the allowed devices
// alone, and the recorded policies depend on their last bits (docs/adr/0066).

// highest returns the highest score of the allowed devices.
func highest(scores []float32, ok []bool) float32 {
	top := float32(math.Inf(-1))
	for d, s := range scores {
		if ok[d] {
			top = max(top, s)
		}
	}
	return top
}

// softmax writes the probabilities of the allowed devices at scores, [D].
func softmax(scores []float32, ok []bool, to []float32) {
	top := highest(scores, ok)
	for d, s := range scores {
		to[d] = 0
		if ok[d] {
			to[d] = float32(math.Exp(float64(s - top)))
		}
	}
	vec.Scale(to, 1/vec.Sum(to))
}

// logSoftmaxAt returns the logarithm of the probability of device at.
func logSoftmaxAt(scores []float32, ok []bool, at int32) float32 {
	top, sum := highest(scores, ok), 0.0
	for d, s := range scores {
		if ok[d] {
			sum += math.Exp(float64(s - top))
		}
	}
	return scores[at] - top - float32(math.Log(sum))
}

// bestOf returns the allowed device of the highest score, the first of equals.
func bestOf(scores []float32, ok []bool) int32 {
	best := int32(none)
	for d := range scores {
		if ok[d] && (best == none || scores[d] > scores[best]) {
			best = int32(d)
		}
	}
	return best
}

// pick returns the allowed device whose share of [0,1) under probabilities p holds x.
func pick(p []float32, ok []bool, x float32) int32 {
	last := int32(none)
	for d, q := range p {
		if !ok[d] {
			continue
		}
		last = int32(d)
		if x -= q; x < 0 {
			return last
		}
	}
	return last
}

// chooser picks the device of a decision: k is the rollout, scores and ok are [D].
type chooser func(k int, u int32, scores []float32, ok []bool) int32

// sampler chooses by the probabilities at temperature[k]; at 0 it takes the best.
func sampler(temperature []float32, random *rand.Rand, devices int) chooser {
	p, z := make([]float32, devices), make([]float32, devices)
	return func(k int, _ int32, scores []float32, ok []bool) int32 {
		if temperature[k] == 0 {
			return bestOf(scores, ok)
		}
		for d := range scores {
			z[d] = scores[d] / temperature[k]
		}
		softmax(z, ok, p)
		return pick(p, ok, random.Float32())
	}
}
