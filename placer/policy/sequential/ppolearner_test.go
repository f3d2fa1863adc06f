package sequential

import (
	"context"
	"math"
	"slices"
	"testing"
)

// ppoCase returns a tuning of a small graph at its cells, a ppoLearner of its
// policy, its elite and as many samples.
func ppoCase(t *testing.T) (*tuning, *ppoLearner, []*elite) {
	t.Helper()
	return ppoCaseBy(t, policy(t, 16))
}

// ppoCaseBy is ppoCase for a policy.
func ppoCaseBy(t *testing.T, by *Policy) (*tuning, *ppoLearner, []*elite) {
	t.Helper()
	r := begunBy(t, by, small)
	x := newPPOLearner(r.Policy, DefaultPPO())
	r.learner = x
	must(t, r.startLevel(t.Context(), 0))
	all, _, err := r.sample(context.Background(), 8)
	must(t, err)
	r.elite = all[:4]
	return r, x, all[4:]
}

// objective is what gradient's is the gradient of: the elite's mean log likelihood and
// the mean of the others' probability ratios times their advantages.
func (x *ppoLearner) objective(l *logits, good int) (sum float64) {
	e := x.rollouts
	z, features := make([]float32, e.d), make([]float32, e.d*len(tied))
	e.backpropagate(func(row int, scores []float32, ok []bool, grad []float32) {
		clear(grad)
		k := row % e.k
		e.tiedOf(row, features)
		l.sum(e.of[row], scores, features, z)
		logp := float64(logSoftmaxAt(z, ok, e.chosen[row]))
		if k < good {
			sum += logp / float64(good)
		} else {
			sum += float64(x.advance[k]) * math.Exp(logp-float64(x.logp[row])) / float64(e.k-good)
		}
	})
	return sum
}

// TestPPOGradient: the gradients of embeddings and weights are the
// objective's, by finite differences.
func TestPPOGradient(t *testing.T) {
	r, x, sampled := ppoCase(t)
	l, good := r.logits, len(r.elite)
	all := slices.Concat(r.elite, sampled)
	x.replay(r, all)
	x.weigh(l, all, good)
	x.net.params.ZeroGrad()
	x.gradient(l, good)
	decisions := float64(len(l.order))
	dFree, dTied, dLinear := slices.Clone(l.dFree), slices.Clone(l.dTied), slices.Clone(x.net.linear.Grad)
	largest := func(g []float32) (at int) {
		for i := range g {
			if math.Abs(float64(g[i])) > math.Abs(float64(g[at])) {
				at = i
			}
		}
		return at
	}
	for _, c := range []struct {
		name   string
		of     []float32
		grad   []float32
		factor float64
	}{{"free", l.free, dFree, 1}, {"tied", l.tied, dTied, 1}, {"network", x.net.linear.Value, dLinear, -decisions}} {
		i := largest(c.grad)
		const step = 1e-2
		was := c.of[i]
		c.of[i] = was + step
		up := x.objective(l, good)
		c.of[i] = was - step
		down := x.objective(l, good)
		c.of[i] = was
		got, want := c.factor*float64(c.grad[i]), (up-down)/(2*step)
		if math.Abs(got-want) > 0.03*math.Abs(want)+1e-3 || want == 0 {
			t.Errorf("%s: gradient %g, by differences %g", c.name, got, want)
		}
	}
}

// TestPPOMovesBoth: a step moves the network's weights and the embeddings.
func TestPPOMovesBoth(t *testing.T) {
	r, x, sampled := ppoCase(t)
	weights, free := slices.Clone(x.net.wy.Value), slices.Clone(r.logits.free)
	must(t, x.fit(t.Context(), r, sampled, r.pace.fits))
	if slices.Equal(weights, x.net.wy.Value) {
		t.Error("the network's weights are as before")
	}
	if slices.Equal(free, r.logits.free) {
		t.Error("the embeddings are as before")
	}
}

// TestPPOKeepsTheEncoder: what the encoder says of units stays, what the decoder makes of it
// is learned.
func TestPPOKeepsTheEncoder(t *testing.T) {
	r, x, sampled := ppoCaseBy(t, encoded(t))
	s, read := r.logits.s, slices.Clone(x.net.we.Value)
	before := x.net.encoder.embed(s).Clone()
	must(t, x.fit(t.Context(), r, sampled, r.pace.fits))
	x.net.changed()
	if after := x.net.encoder.embed(s); !slices.Equal(before.V, after.V) {
		t.Error("the encoder learns")
	}
	if slices.Equal(read, x.net.we.Value) {
		t.Error("the decoder does not")
	}
}

// TestPPOEndsWithTheBudget: where the seconds are spent nothing is learned, for
// nothing would be sampled by it.
func TestPPOEndsWithTheBudget(t *testing.T) {
	r, x, sampled := ppoCase(t)
	weights, free := slices.Clone(x.net.wy.Value), slices.Clone(r.logits.free)
	r.pace.budget.Seconds, r.pace.clock = 1, func() float64 { return 2 }
	must(t, x.fit(t.Context(), r, sampled, r.pace.fits))
	if !slices.Equal(weights, x.net.wy.Value) || !slices.Equal(free, r.logits.free) {
		t.Error("it learns behind the end of the budget")
	}
}

// TestSpaced: of more placements than are asked for, some from all over.
func TestSpaced(t *testing.T) {
	all := make([]*elite, 10)
	for i := range all {
		all[i] = &elite{kept: kept{Born: i}}
	}
	var born []int
	for _, x := range spaced(all, 4) {
		born = append(born, x.Born)
	}
	if !slices.Equal(born, []int{0, 2, 5, 7}) {
		t.Errorf("4 of 10 are %v", born)
	}
	if got := len(spaced(all, 12)); got != 10 {
		t.Errorf("12 of 10 are %d", got)
	}
}

// TestRoomForPPO: a graph of which two placements are more than is learned from at once
// is declined, and one of just so many is not.
func TestRoomForPPO(t *testing.T) {
	x := &ppoLearner{}
	must(t, x.room(&instance{decisions: mostRows / 16, d: 8}))
	if err := x.room(&instance{decisions: mostRows/16 + 1, d: 8}); err == nil {
		t.Error("a graph of too many decisions is accepted")
	}
}

// TestPPOClips: samples that have gone far enough give no gradient.
func TestPPOClips(t *testing.T) {
	r, x, sampled := ppoCase(t)
	r.elite = nil
	x.replay(r, sampled)
	x.weigh(r.logits, sampled, 0)
	x.gradient(r.logits, 0)
	for row := range x.logp {
		if x.advance[row%x.rollouts.k] > 0 {
			x.logp[row] -= 0.5
		} else {
			x.logp[row] += 0.5
		}
	}
	x.gradient(r.logits, 0)
	if slices.ContainsFunc(r.logits.dFree, func(g float32) bool { return g != 0 }) {
		t.Error("clipped samples move the embeddings")
	}
}

// TestWeigh: the elite weighs 1 each, of the others the faster has the higher advantage.
func TestWeigh(t *testing.T) {
	r, x, _ := ppoCase(t)
	of := func(seconds float64) *elite { return &elite{kept: kept{placement: placement{Seconds: seconds}}} }
	x.weigh(r.logits, []*elite{of(1), of(2), of(3), of(2.5)}, 1)
	if a := x.advance; a[0] != 1 || !(a[1] > a[3] && a[3] > a[2]) || a[1] <= 0 || a[2] >= 0 {
		t.Errorf("steps of 2, 3 and 2.5 s have the advantages %v", a[1:])
	}
}
