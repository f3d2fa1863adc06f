package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFitGradient compares fit's step with finite differences of the elite's mean
// log likelihood.
func TestFitGradient(t *testing.T) {
	s := instanceOf(t, small)
	w, err := NewFeatures(s.problem)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Tuner{Policy: policy(t, 6), Config: quickTune()}.begin(context.Background(), w, crossEntropy{})
	if err != nil {
		t.Fatal(err)
	}
	must(t, r.startLevel(0))
	all, _, _ := r.sample(context.Background(), 3)
	l := r.logits
	for _, x := range all {
		x.of = r.workers[0].replay(l, x.Cells)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for _, v := range [][]float32{l.free, l.tied} {
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
	}
	value := func() (sum float64) {
		logits := make([]float32, s.d)
		for _, x := range all {
			for k, u := range l.order {
				l.sum(u, x.of.scores[k*s.d:(k+1)*s.d], x.of.tied[k*s.d*len(tied):(k+1)*s.d*len(tied)], logits)
				sum += float64(logSoftmaxAt(logits, x.of.ok[k*s.d:(k+1)*s.d], x.of.chosen[k])) / float64(len(all))
			}
		}
		return sum
	}
	for name, v := range map[string][]float32{"free": l.free, "tied": l.tied} {
		for i := 0; i < len(v); i += 1 + len(v)/40 {
			const h = 1e-2
			was := v[i]
			v[i] = was + h
			up := value()
			v[i] = was - h
			down := value()
			v[i] = was
			free, weights := slices.Clone(l.free), slices.Clone(l.tied)
			l.fit(all, 1, 1)
			got := float64(map[string][]float32{"free": l.free, "tied": l.tied}[name][i] - was)
			copy(l.free, free)
			copy(l.tied, weights)
			if want := (up - down) / (2 * h); math.Abs(want-got) > 2e-3+0.02*math.Abs(want) {
				t.Errorf("%s[%d]: step %g, want %g", name, i, got, want)
			}
		}
	}
}
