package placer

import (
	"math"
	"slices"

	"placer/gonet"
	"placer/nn"
	"placer/plan"
)

// elites are what a policy has sampled of late, for it to imitate the best: the
// choices that these share are good, whatever each of them adds, and thousands of
// choices can be learnt at once from the order of some hundred samples (the
// cross-entropy method: R. Rubinstein, Methodology and Computing in Applied
// Probability 1, 1999).
type elites struct {
	window int // samples kept
	share  float64
	mix    float64
	recent []sample // oldest first
}

// sample is one decision by class.
type sample struct {
	level []int32 // [C]
	score plan.Score
}

func newElites(c ClassConfig) *elites {
	return &elites{window: c.Window, share: c.Elite, mix: c.Mix}
}

// add keeps the decisions actions, of which slot names the choices of classes.
func (x *elites) add(actions [][]int32, scores []plan.Score, slot []int32) {
	for k, a := range actions {
		s := sample{level: make([]int32, len(slot)), score: scores[k]}
		for c, at := range slot {
			s.level[c] = a[at]
		}
		x.recent = append(x.recent, s)
	}
	x.recent = slices.Delete(x.recent, 0, max(0, len(x.recent)-x.window))
}

// frequencies returns how often the best of the kept samples choose each level of
// each class, [C levels], the older of equal ones first.
func (x *elites) frequencies(levels int) []float64 {
	best := slices.Clone(x.recent)
	slices.SortStableFunc(best, func(a, b sample) int {
		switch {
		case a.score.Better(b.score):
			return -1
		case b.score.Better(a.score):
			return 1
		}
		return 0
	})
	best = best[:max(min(2, len(best)), int(x.share*float64(len(best))))]
	f := make([]float64, len(best[0].level)*levels)
	for _, s := range best {
		for c, l := range s.level {
			f[c*levels+int(l)] += 1 / float64(len(best))
		}
	}
	return f
}

// leastChance keeps the logarithm of a chance finite. A level that comes to it is
// given up.
const leastChance = 1e-9

// lean moves the policy's chances for each class by a part of the way to the
// frequencies of the elites, by the free logits of batch.
func (p *Policy) lean(batch *gonet.Batch, env *environment, x *elites) error {
	logits, err := p.logits(batch)
	if err != nil {
		return err
	}
	p.network.Params() // from a device: the values are changed below
	levels := env.level
	want := x.frequencies(levels)
	free, chance := batch.Free[0], make([]float64, levels)
	for c, slot := range env.slot {
		u, k := int(slot)/env.kinds, int(slot)%env.kinds
		row := logits[0][u][k*levels : (k+1)*levels]
		nn.SoftmaxRow(chance, row)
		to := free.Value[u*free.Shape[1]+k*levels:][:levels]
		for l, q := range chance {
			q = max(q, leastChance)
			to[l] += float32(math.Log((1-x.mix)*q+x.mix*max(want[c*levels+l], leastChance)) - math.Log(q))
		}
	}
	return nil
}
