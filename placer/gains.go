package placer

import (
	"math"
	"math/rand/v2"
)

// gains is what the levels of each class gain over those of the best plan, by the
// differences between samples and it.
type gains struct {
	FusionConfig
	level      []int32     // [C] of the best plan
	sum, count [][]float64 // [C][levels] seconds more, and trust in them
	share      []float64   // [levels] scratch
	step       float64     // seconds of the best plan
	probes     *probes
}

func newGains(c FusionConfig, x *classes, random *rand.Rand) *gains {
	t := &gains{FusionConfig: c, share: make([]float64, c.Levels), probes: newProbes(c, x, random)}
	for range x.ops {
		t.sum, t.count = append(t.sum, make([]float64, c.Levels)), append(t.count, make([]float64, c.Levels))
	}
	return t
}

// add takes in the differences of a round.
func (t *gains) add(round [][]difference) {
	for _, sample := range round {
		for _, d := range sample {
			t.sum[d.class][d.level] += d.seconds * d.trust
			t.count[d.class][d.level] += d.trust
		}
	}
}

// follow has the table be about the best plan, with fusion, [N], and a step of step
// seconds. A class whose level has changed keeps what is known of the others if it
// is known what the change has brought.
func (t *gains) follow(x *classes, fusion []uint8, step float64) {
	t.step = step
	first := t.level == nil
	changed := first
	if first {
		t.level = make([]int32, len(x.ops))
	}
	for c, ops := range x.ops {
		was, is := t.level[c], int32(fusion[ops[0]])
		t.level[c] = is
		if first || is == was {
			continue
		}
		changed = true
		sum, count := t.sum[c], t.count[c]
		if n := count[is]; n > 0 {
			mean := sum[is] / n
			for l := range sum {
				sum[l] -= mean * count[l]
			}
			sum[was], count[was] = -mean*n, n
		} else {
			clear(sum)
			clear(count)
		}
		sum[is], count[is] = 0, 0
	}
	if changed {
		t.probes.again()
	}
}

// doubt is how much trust what untried levels are taken to cost has.
const doubt = 0.2

// steer changes the chances of class c that imitation comes to: by exploration of
// any level, and by a share of Settle to those that gain most.
func (t *gains) steer(c int, chance []float64, spent float64) {
	u := min(t.Explore*t.Finer, t.Strays/float64(len(t.sum))) * min(1, (1-spent)/exploreEnd) / float64(len(chance))
	for l := range chance {
		chance[l] = (1-u*float64(len(chance)))*chance[l] + u
	}
	if t.level == nil {
		return
	}
	least := 0.0
	for l := range t.share {
		t.share[l] = 0
		if l != int(t.level[c]) {
			t.share[l] = (t.sum[c][l] + doubt*t.Untried*t.step) / (t.count[c][l] + doubt)
			least = min(least, t.share[l])
		}
	}
	total := 0.0
	for l, x := range t.share {
		t.share[l] = math.Exp((least - x) / (t.Settled * t.step))
		total += t.share[l]
	}
	for l := range chance {
		chance[l] = (1-t.Settle)*chance[l] + t.Settle*t.share[l]/total
	}
}
