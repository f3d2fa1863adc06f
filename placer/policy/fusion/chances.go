package fusion

import (
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/placer/policy/cem"
)

// chances are those of every class's levels, [C][levels].
type chances [][]float64

// leastChance is what a chance is never below: a level that comes to it is hardly ever drawn again.
const leastChance = 1e-9

// newChances begins with the middle level the likeliest: everything fused.
func newChances(classes int) chances {
	x := make(chances, classes)
	for c := range x {
		x[c] = make([]float64, levels)
		sum := levels - 1 + math.Exp(middlePrior)
		for a := range x[c] {
			x[c][a] = 1 / sum
		}
		x[c][levels/2] = math.Exp(middlePrior) / sum
	}
	return x
}

// sample draws a level for each class.
func (x chances) sample(r *rand.Rand) []int32 {
	level := make([]int32, len(x))
	for c, q := range x {
		level[c] = nn.Draw(q, r)
	}
	return level
}

// follow moves the chances a part mix of the way to how often the samples of best
// choose a level, each counted by its rank, and then to where adjust has them.
func (x chances) follow(best []cem.Sample, mix float64, adjust func(c int, chance []float64)) {
	weight := rankWeights(len(best))
	for c, q := range x {
		for a := range q {
			q[a] *= 1 - mix
		}
		for k, s := range best {
			q[s.Action[c]] += mix * weight[k]
		}
		for a := range q {
			q[a] = max(q[a], leastChance)
		}
		adjust(c, q)
		sum := 0.0
		for a := range q {
			q[a] = max(q[a], leastChance)
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

// As a finer stage begins, a class leaves the best plan with a chance of mostLeave,
// or with less if more than strays classes of a sample would.
const (
	mostLeave = 0.02
	strays    = 5
)

// finer returns chances of the classes of y, parts of those of from, by which each has
// the level that fusion, [N], gives it, and leaves it for those of the class that it
// was part of.
func (x chances) finer(from, y *classes, fusion []uint8) chances {
	all := make(chances, len(y.ops))
	leave := min(mostLeave, strays/float64(len(y.ops)))
	for c, ops := range y.ops {
		all[c] = make([]float64, levels)
		for a, p := range x[from.of[ops[0]]] {
			all[c][a] = leave * p
		}
		all[c][fusion[ops[0]]] += 1 - leave
	}
	return all
}
