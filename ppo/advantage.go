package ppo

import (
	"fmt"
	"math"
)

// Baseline says what is subtracted from a reward to get its advantage.
type Baseline int

// The baselines. Standardised is ours and the default: rewards of one round
// minus their mean, divided by their deviation, so that a step does not shrink
// as the samples of a graph come to differ little.
const (
	Standardised  Baseline = iota
	LearnedValue           // the value network's output (GO)
	AverageReward          // the average reward of all earlier trials (GDP)
)

// String returns the name of b.
func (b Baseline) String() string {
	switch b {
	case Standardised:
		return "standardised"
	case LearnedValue:
		return "learned value"
	case AverageReward:
		return "average reward"
	}
	return fmt.Sprintf("Baseline(%d)", int(b))
}

// Standardise writes (x - mean) / (deviation + 1e-6) into dst, which has the length of x and may
// be x.
func Standardise(dst, x []float32) {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	s := 1 / (math.Sqrt(square/float64(len(x))) + 1e-6)
	for i, v := range x {
		dst[i] = float32((float64(v) - mean) * s)
	}
}

// groupAdvantages returns the advantages of samples in groups of g: the means of
// the groups, standardised, and what the samples differ from them by,
// standardised.
func groupAdvantages(rewards []float32, g int) (means, within []float32) {
	means, within = make([]float32, len(rewards)), make([]float32, len(rewards))
	for i, x := range rewards {
		for j := range g {
			means[i-i%g+j] += x / float32(g)
		}
	}
	for i, x := range rewards {
		within[i] = x - means[i]
	}
	Standardise(means, means)
	Standardise(within, within)
	return means, within
}
