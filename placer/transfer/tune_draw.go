package transfer

import (
	"math"
	"math/rand/v2"
)

// push draws a set of units to a device in one sample: what independent decisions
// almost never do together. The set are those of one group, of those with a rank
// along the forward pass in [lo, hi), or both.
type push struct {
	group  []int32 // [U]; nil for any
	is     int32
	rank   []int32 // [U]; nil for any
	lo, hi int32
	device int32
	by     float32
}

// has reports whether u is in the set.
func (p *push) has(u int32) bool {
	return (p.group == nil || p.group[u] == p.is) && (p.rank == nil || p.rank[u] >= p.lo && p.rank[u] < p.hi)
}

// tuneDraw is how one sample is drawn.
type tuneDraw struct {
	random      *rand.Rand
	temperature float32
	pushes      []push
	entropy     float64 // of its decisions, summed
}

// draw returns how to make a sample of step k: at a temperature around 1, and with
// one or two pushes in some.
func (c TuneConfig) draw(l *tuneLevel, k int, random *rand.Rand) *tuneDraw {
	done := float64(k) / float64(c.Steps)
	hottest := c.Hottest + (1-c.Hottest)*done
	x := &tuneDraw{random: random, temperature: float32(c.Coolest + (hottest-c.Coolest)*random.Float64())}
	if random.Float64() >= c.Pushed {
		return x
	}
	for range 1 + random.IntN(2) {
		p := push{device: int32(random.IntN(l.s.d)), by: float32(c.Push)}
		u := random.IntN(len(l.rank))
		kind := random.IntN(3)
		if kind != 0 {
			p.group = l.groups[random.IntN(len(l.groups))]
			p.is = p.group[u]
		}
		if kind != 1 {
			width := int32(math.Exp(random.Float64() * math.Log(max(1, float64(len(l.rank))/3))))
			p.rank, p.lo = l.rank, l.rank[u]-width/2
			p.hi = p.lo + max(1, width)
		}
		x.pushes = append(x.pushes, p)
	}
	return x
}

// choose draws a device for u. It overwrites logits; p is scratch, [D].
func (x *tuneDraw) choose(u int32, logits []float32, ok []bool, p []float32) int32 {
	for i := range logits {
		logits[i] /= x.temperature
	}
	for i := range x.pushes {
		if q := &x.pushes[i]; q.has(u) {
			logits[q.device] += q.by
		}
	}
	softmax(logits, ok, p)
	at, last := x.random.Float32(), int32(none)
	chosen := int32(none)
	for d, q := range p {
		if !ok[d] {
			continue
		}
		if q > 0 {
			x.entropy -= float64(q) * math.Log(float64(q))
		}
		last = int32(d)
		if at -= q; at < 0 && chosen == none {
			chosen = last
		}
	}
	if chosen == none {
		return last
	}
	return chosen
}
