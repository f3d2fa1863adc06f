package placer

import (
	"math"
	"slices"

	"placer/gonet"
	"placer/nn"
	"placer/plan"
	"placer/transformerxl"
)

// elites are what a policy has sampled of late, for it to imitate the best: the
// choices that these share are good, whatever each of them adds, and thousands of
// choices can be learnt at once from the order of some hundred samples (the
// cross-entropy method: R. Rubinstein, Methodology and Computing in Applied
// Probability 1, 1999).
type elites struct {
	ImitationConfig
	choices []choice
	recent  []sample // oldest first
}

// choice is one of the choices that make up a decision.
type choice struct {
	at     int // in a decision
	task   int // of the network
	unit   int
	column int // of its first level in the task's logits
	levels int
}

// sample is one decision, of the choices that are imitated.
type sample struct {
	level []int32 // [choices]
	score plan.Score
}

// choices lists the choices that count in a decision of d on tasks: all but
// those of fusion that no class has.
func (d *decoder) choices(tasks []transformerxl.Task) (all []choice) {
	at, n := 0, d.part.NumUnits()
	for t, task := range tasks {
		one := func(k int) {
			all = append(all, choice{at + k, t, k / task.Kinds, k % task.Kinds * task.Levels, task.Levels})
		}
		if task.Name == transformerxl.Fusion && d.class != nil {
			for _, slot := range d.slot {
				one(int(slot))
			}
		} else {
			for k := range n * task.Kinds {
				one(k)
			}
		}
		at += n * task.Kinds
	}
	return all
}

// add keeps the decisions actions, and returns them as samples.
func (x *elites) add(actions [][]int32, scores []plan.Score) (round []sample) {
	for k, a := range actions {
		s := sample{level: make([]int32, len(x.choices)), score: scores[k]}
		for i, c := range x.choices {
			s.level[i] = a[c.at]
		}
		round = append(round, s)
	}
	x.recent = append(x.recent, round...)
	x.recent = slices.Delete(x.recent, 0, max(0, len(x.recent)-x.Window))
	return round
}

// best returns the best of the kept samples, the older of equal ones first.
func (x *elites) best() []sample {
	all := slices.Clone(x.recent)
	slices.SortStableFunc(all, func(a, b sample) int {
		switch {
		case a.score.Better(b.score):
			return -1
		case b.score.Better(a.score):
			return 1
		}
		return 0
	})
	return all[:max(min(2, len(all)), int(x.Elite*float64(len(all))))]
}

// frequencies writes how often the samples of best choose each level of choice i,
// [levels], each counted by its weight.
func frequencies(best []sample, weight []float64, i int, to []float64) {
	clear(to)
	for k, s := range best {
		to[s.level[i]] += weight[k]
	}
}

// weights returns what each of n elites, the best first, counts: the same or, if
// they are ranked, log(n+1/2) - log(rank), as in evolution strategies (N. Hansen,
// arXiv 1604.00772, eq. 49); they sum to 1.
func (c ImitationConfig) weights(n int) []float64 {
	w := slices.Repeat([]float64{1 / float64(n)}, n)
	if !c.Ranked {
		return w
	}
	sum := 0.0
	for k := range w {
		w[k] = math.Log(float64(n)+0.5) - math.Log(float64(k+1))
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// leastChance keeps the logarithm of a chance finite. A level that comes to it is
// given up.
const leastChance = 1e-9

// steerer changes the chances of a choice that imitation comes to when a share of
// the budget is spent.
type steerer interface {
	steer(choice int, chance []float64, spent float64)
}

// lean moves the policy's chances for each choice by a part of the way to how
// often the elites choose its levels, by the free logits of batch, and then to
// where guide, if not nil, steers them. Levels that a unit cannot have stay as they are.
func (p *Policy) lean(batch *gonet.Batch, x *elites, guide steerer, spent float64) error {
	logits, err := p.logits(batch)
	if err != nil {
		return err
	}
	p.network.Params() // from a device: the values are changed below
	best := x.best()
	weight := x.weights(len(best))
	var want, chance []float64
	for i, c := range x.choices {
		want, chance = slices.Grow(want[:0], c.levels)[:c.levels], slices.Grow(chance[:0], c.levels)[:c.levels]
		frequencies(best, weight, i, want)
		row := logits[c.task][c.unit][c.column : c.column+c.levels]
		nn.SoftmaxRow(chance, row)
		free := batch.Free[c.task]
		to := free.Value[c.unit*free.Shape[1]+c.column:][:c.levels]
		for l, q := range chance {
			want[l] = (1-x.Mix)*max(q, leastChance) + x.Mix*max(want[l], leastChance)
		}
		if guide != nil {
			guide.steer(i, want, spent)
		}
		for l, q := range chance {
			if row[l] != nn.Masked {
				to[l] += float32(math.Log(max(want[l], leastChance)) - math.Log(max(q, leastChance)))
			}
		}
	}
	return nil
}
