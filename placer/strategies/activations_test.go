package strategies

import (
	"fmt"
	"math"
	"testing"

	"placer/graph/strategy"
)

// TestActivationMemory: what a layer of GPT keeps for its gradients on a rank is what
// Korthikanti et al. count (arXiv:2205.05198, section 4 and table 2), in bytes of s*b*h:
//
//	nothing split                34 + 5as/h
//	split products               10 + 24/t + 5as/(ht)
//	and selective recomputation  10 + 24/t
//	all recomputed               2
//	sequences split too          each of these, t-th parts of all: 34/t + 5as/(ht), 34/t, 2/t
//
// Without dropout two masks of a byte lack in the 10, and of 5as/h the mask (1) and what it leaves of
// the probabilities (2), so that 8 and 2as/h are left. What a layer more adds to the peak is that,
// its parameters, and little else: statistics of its norms, two numbers a row.
func TestActivationMemory(t *testing.T) {
	const s, b, h, a = 1024, 64, 1024, 8
	for dropout, x := range map[bool]struct{ whole, scores float64 }{false: {8, 2. * a * s / h}, true: {10, 5. * a * s / h}} {
		for _, c := range []struct {
			text   string
			tensor float64
			want   float64
		}{
			{"one device", 1, x.whole + 24 + x.scores},
			{"recompute=selective", 1, x.whole + 24},
			{"tp=8", 8, x.whole + 24./8 + x.scores/8},
			{"tp=8 recompute=selective", 8, x.whole + 24./8},
			{"tp=8 recompute", 8, 2},
			{"tp=8 sp", 8, (x.whole + 24 + x.scores) / 8},
			{"tp=8 vocab sp", 8, (x.whole + 24 + x.scores) / 8},
			{"tp=8 sp recompute=selective", 8, (x.whole + 24.) / 8},
			{"tp=8 sp recompute", 8, 2. / 8},
			{"tp=2 sp", 2, (x.whole + 24 + x.scores) / 2},
			{"tp=2", 2, x.whole + 24./2 + x.scores/2},
			{"tp=2 recompute=selective", 2, x.whole + 24./2},
		} {
			want := c.want + 12*h*h*2/c.tensor/(s*b*h)
			if got := perLayer(t, c.text, dropout, s, b, h, a); math.Abs(got-want) > 0.02 {
				t.Errorf("%s, dropout %v: a layer adds %.3f bytes of s*b*h, want %.3f", c.text, dropout, got, want)
			}
		}
	}
}

// perLayer returns by how much the seventh layer of GPT raises the peak of a rank under a
// strategy, in bytes of s*b*h.
func perLayer(t *testing.T, text string, dropout bool, s, b, h, a int) float64 {
	t.Helper()
	st, err := strategy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var peak [2]float64
	for k := range peak {
		x, j := models8(t, fmt.Sprintf("gpt:layers=%d,hidden=%d,heads=%d,ffn=%d,seq=%d,vocab=100,dtype=f16,optimizer=sgd,attention=products,dropout=%v", 6+k, h, a, 4*h, s, dropout))
		x.batch = int64(b)
		step, err := x.derive(j, st, true)
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		peak[k] = float64(r.Fullest())
	}
	return (peak[1] - peak[0]) / float64(s*b*h)
}
