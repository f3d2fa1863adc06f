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
	must(t, r.startLevel(t.Context(), 0))
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
		logits, features := make([]float32, s.d), make([]float32, s.d*len(tied))
		for _, x := range all {
			for k, u := range l.order {
				x.of.tied.get(k*s.d, features)
				l.sum(u, x.of.scores[k*s.d:(k+1)*s.d], features, logits)
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
			l.fit(all, 1, 1, func() bool { return false })
			got := float64(map[string][]float32{"free": l.free, "tied": l.tied}[name][i] - was)
			copy(l.free, free)
			copy(l.tied, weights)
			if want := (up - down) / (2 * h); math.Abs(want-got) > 2e-3+0.02*math.Abs(want) {
				t.Errorf("%s[%d]: step %g, want %g", name, i, got, want)
			}
		}
	}
}

// TestTiedRows: what is kept of the tied features is what they were, to the bit.
func TestTiedRows(t *testing.T) {
	w, _ := views(t, small)
	r, err := Tuner{Policy: policy(t, 6), Config: quickTune()}.begin(t.Context(), w, crossEntropy{})
	must(t, err)
	must(t, r.startLevel(t.Context(), 0))
	worker, d, shares := r.workers[0], r.logits.s.d, 0
	kept, got := newTiedRows(d+1), make([]float32, d*len(tied))
	names := newDeviceNames(r.logits.s)
	worker.rollouts.roll([]heuristic{worker.prior}, rolling{choose: func(_ int, u int32, _ []float32, ok []bool) int32 {
		worker.rollouts.tiedOf(0, worker.row)
		kept.put(1, worker.row)
		kept.get(1, got)
		if !slices.Equal(got, worker.row) {
			t.Fatalf("unit %d: %v is kept as %v", u, worker.row, got)
		}
		for lo := 0; lo < len(got); lo += len(tied) {
			if x := got[lo+savedTied]; x != 0 && x != 1 {
				shares++
			}
		}
		to := names.of(u%int32(d), worker.rollouts.states[0].number)
		ok[to] = true
		return to
	}})
	if shares == 0 {
		t.Error("no share is between 0 and 1: the case tests nothing")
	}
}

// counting is a context that ends when Err was asked a number of times.
type counting struct {
	context.Context
	left int
}

func (c *counting) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestLearningStops: learning ends with its context, in the replay of the elite as in the
// steps of the gradient, and when the budget in seconds is spent.
func TestLearningStops(t *testing.T) {
	const endless = 1 << 40 // steps
	for _, c := range []struct {
		name  string
		asked int // how often, before the context ends
		spent float64
		moved bool
	}{{"in the replay", 40, 0, false}, {"in the steps", 20_000, 0, true}, {"the budget is spent", 1 << 60, 2, false}} {
		w, _ := views(t, small)
		r, err := Tuner{Policy: policy(t, 6), Config: quickTune()}.begin(t.Context(), w, crossEntropy{})
		must(t, err)
		ctx := &counting{t.Context(), 1 << 60}
		must(t, r.startLevel(ctx, 0))
		r.elite, _, err = r.sample(ctx, 8)
		must(t, err)
		clear(r.logits.free)
		ctx.left, r.pace.clock, r.pace.budget.Seconds = c.asked, func() float64 { return c.spent }, 1
		if err := r.learner.fit(ctx, r, nil, endless); (err != nil) != (c.spent == 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		if moved := slices.ContainsFunc(r.logits.free, func(x float32) bool { return x != 0 }); moved != c.moved {
			t.Errorf("%s: logits moved: %v", c.name, moved)
		}
	}
}
