package fusion

import "placer/plan"

// In the last two stages a round moves the probabilities by a share of differencesMix to
// those of the best samples. A share of byDifference of what results is the softmax of
// the difference rewards at differenceTemperature, a part of the step time. A level that
// was not tried counts as one that takes untried longer, also a part of the step time,
// in untriedCount samples, a pseudo-count.
const (
	differencesMix        = 0.5
	byDifference          = 0.05
	differenceTemperature = 1e-6
	untried               = 1e-5
	untriedCount          = 0.2
)

// differences are the difference rewards of each class's levels: the time that they
// take less than those of the best plan.
type differences struct {
	learner    *learner
	classes    *classes
	reference  *reference
	level      []int32     // [C] of the best plan; nil before there is one
	sum, count [][]float64 // [C][levels] seconds more, and how much they count
	share      []float64   // [levels] scratch
	step       float64     // seconds of the best plan
	lookahead  *lookahead
	regions    []regions // of each worker
	found      [][]difference
}

func byDifferences(l *learner, x *classes) teacher { return newDifferences(l, x) }

func newDifferences(l *learner, x *classes) *differences {
	n := len(x.ops)
	return &differences{
		learner: l, classes: x, sum: table(n), count: table(n), share: make([]float64, levels),
		lookahead: newLookahead(x, l.random), regions: make([]regions, len(l.kernels)),
	}
}

// learn is as teacher says.
func (t *differences) learn(actions [][]int32, _ []plan.Score, best *plan.Decision, step float64) {
	if t.reference != nil {
		t.compare(actions)
	}
	t.reference = t.learner.newReference(best)
	t.follow(best.Fusion, step)
	t.compare(t.lookahead.plans(t.level, t.learner.Lookahead))
}

// compare takes in what sets decisions apart from the reference. Only their kernels
// are priced.
func (t *differences) compare(actions [][]int32) {
	l := t.learner
	t.found = resized(t.found, len(actions))
	l.run.Each(len(actions), func(k, j int) {
		t.found[j] = t.regions[k].differences(t.found[j][:0], t.classes, t.reference, l.price(k, t.classes, actions[j]))
	})
	t.take(t.found)
}

// take adds differences to what levels gain.
func (t *differences) take(found [][]difference) {
	for _, sample := range found {
		for _, d := range sample {
			t.sum[d.class][d.level] += d.seconds * d.weight
			t.count[d.class][d.level] += d.weight
		}
	}
}

// follow makes the best plan, with fusion, [N], and a step of step seconds, what
// differences are to. A class whose level has changed keeps what is known of the others if it
// is known what the change has brought.
func (t *differences) follow(fusion []uint8, step float64) {
	t.step = step
	first := t.level == nil
	if first {
		t.level = make([]int32, len(t.classes.ops))
	}
	changed := first
	for c, ops := range t.classes.ops {
		was, is := t.level[c], int32(fusion[ops[0]])
		t.level[c] = is
		if first || is == was {
			continue
		}
		changed = true
		sum, count := t.sum[c], t.count[c]
		if n := count[is]; n > 0 {
			mean := sum[is] / n
			for a := range sum {
				sum[a] -= mean * count[a]
			}
			sum[was], count[was] = -mean*n, n
		} else {
			clear(sum)
			clear(count)
		}
		sum[is], count[is] = 0, 0
	}
	if changed {
		t.lookahead.again()
	}
}

// mix is as teacher says.
func (t *differences) mix() float64 { return differencesMix }

// adjust is as teacher says: it explores any level, of no more than strays classes a
// sample, and moves a share of byDifference to the levels that gain most.
func (t *differences) adjust(c int, probability []float64, spent float64) {
	u := min(explore*finer, strays/float64(len(t.sum))) * min(1, (1-spent)/exploreEnd)
	for a := range probability {
		probability[a] = (1-u)*probability[a] + u/levels
	}
	for a := range t.share {
		t.share[a] = 0
		if a != int(t.level[c]) {
			t.share[a] = (t.sum[c][a] + untriedCount*untried*t.step) / (t.count[c][a] + untriedCount)
		}
	}
	total := boltzmann(t.share, differenceTemperature*t.step)
	for a := range probability {
		probability[a] = (1-byDifference)*probability[a] + byDifference*t.share[a]/total
	}
}
