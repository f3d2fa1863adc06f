package sequential

import (
	"math"
	"math/rand/v2"
)

// perturbation is a correlated one: it draws a set of units to a device in one rollout,
// which independent decisions almost never do together. The set are those of one
// group, of those with a rank along the forward pass in [lo, hi), or both.
type perturbation struct {
	group  []int32 // [U]; nil for any
	is     int32
	rank   []int32 // [U]; nil for any
	lo, hi int32
	device int32
}

// has reports whether u is in the set.
func (p *perturbation) has(u int32) bool {
	return (p.group == nil || p.group[u] == p.is) && (p.rank == nil || p.rank[u] >= p.lo && p.rank[u] < p.hi)
}

// proposal is how one rollout is drawn.
type proposal struct {
	random        *rand.Rand
	temperature   float32
	perturbations []perturbation
	strength      float32 // what they add to a logit
	entropy       float64 // of its decisions, summed
}

// propose returns how to make a rollout of step k: at a temperature around 1, and with
// one or two perturbations in some.
func (c *tuneSettings) propose(l *logits, k int, random *rand.Rand) *proposal {
	done := float64(k) / float64(c.Steps)
	hottest := c.Hottest + (1-c.Hottest)*done
	x := &proposal{random: random, temperature: float32(c.Coolest + (hottest-c.Coolest)*random.Float64()), strength: float32(c.Perturbation)}
	if random.Float64() >= c.PerturbedShare {
		return x
	}
	const groupings = byLayer + 1 // what the graph says, no rules of thumb
	for range 1 + random.IntN(2) {
		p := perturbation{device: int32(random.IntN(l.s.d))}
		u := random.IntN(len(l.rank))
		kind := random.IntN(3) // of the set: a stretch, a group, what both have in common
		if kind != 0 {
			p.group = l.s.groups[random.IntN(groupings)].of
			p.is = p.group[u]
		}
		if kind != 1 {
			width := int32(math.Exp(random.Float64() * math.Log(max(1, float64(len(l.rank))/3))))
			p.rank, p.lo = l.rank, l.rank[u]-width/2
			p.hi = p.lo + max(1, width)
		}
		x.perturbations = append(x.perturbations, p)
	}
	return x
}

// choose draws a device for u. It overwrites logits; p is scratch, [D].
func (x *proposal) choose(u int32, logits []float32, ok []bool, p []float32) int32 {
	for i := range logits {
		logits[i] /= x.temperature
	}
	for i := range x.perturbations {
		if q := &x.perturbations[i]; q.has(u) {
			logits[q.device] += x.strength
		}
	}
	softmax(logits, ok, p)
	for _, q := range p {
		if q > 0 {
			x.entropy -= float64(q) * math.Log(float64(q))
		}
	}
	return pick(p, ok, x.random.Float32())
}
