package fusion

import (
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/placer/policy/cem"
)

// distribution is what fusions are sampled from, [C][levels]: the probability of each
// level of each class, independently.
type distribution [][]float64

// newDistribution begins with the middle level the likeliest: everything fused.
func newDistribution(classes int) distribution {
	x := make(distribution, classes)
	for c := range x {
		x[c] = make([]float64, levels)
		sum := levels - 1 + math.Exp(middleBias)
		for a := range x[c] {
			x[c][a] = 1 / sum
		}
		x[c][levels/2] = math.Exp(middleBias) / sum
	}
	return x
}

// sample draws a level for each class.
func (d distribution) sample(r *rand.Rand) []int32 {
	level := make([]int32, len(d))
	for c, q := range d {
		level[c] = nn.Draw(q, r)
	}
	return level
}

// update is that of the cross-entropy method: it moves the probabilities a part mix of the
// way to how often the elites, best, choose a level, each counted by its rank. Then adjust
// changes those of each class, which it is given with a sum of about 1.
func (d distribution) update(best []cem.Sample, mix float64, adjust func(c int, probability []float64)) {
	weight := rankWeights(len(best))
	for c, q := range d {
		for a := range q {
			q[a] *= 1 - mix
		}
		for k, s := range best {
			q[s.Action[c]] += mix * weight[k]
		}
		for a := range q {
			q[a] = max(q[a], cem.LeastProbability)
		}
		adjust(c, q)
		sum := 0.0
		for a := range q {
			q[a] = max(q[a], cem.LeastProbability)
			sum += q[a]
		}
		for a := range q {
			q[a] /= sum
		}
	}
}

// rankWeights returns what each of n elites, the best first, counts: log(n+1/2) -
// log(rank), as in evolution strategies (N. Hansen, arXiv 1604.00772, eq. 49), scaled
// to sum to 1.
func rankWeights(n int) []float64 {
	w, sum := make([]float64, n), 0.0
	for k := range w {
		w[k] = math.Log(float64(n)+0.5) - math.Log(float64(k+1))
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// As a finer stage begins, a class leaves the best plan with a probability of mostLeave,
// or with less if more than strays classes of a sample would.
const (
	mostLeave = 0.02
	strays    = 5
)

// finer returns a distribution for the classes of y, parts of those of from: each has the
// level that fusion, [N], gives it, and leaves it with a small probability for a level by
// d, of the class that it was part of.
func (d distribution) finer(from, y *classes, fusion []uint8) distribution {
	all := make(distribution, len(y.ops))
	leave := min(mostLeave, strays/float64(len(y.ops)))
	for c, ops := range y.ops {
		all[c] = make([]float64, levels)
		for a, p := range d[from.of[ops[0]]] {
			all[c][a] = leave * p
		}
		all[c][fusion[ops[0]]] += 1 - leave
	}
	return all
}
