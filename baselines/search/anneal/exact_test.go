package anneal

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExactShorten: what it comes to is shorter, scored as the problem scores it, within the
// evaluations and the same under the same source; where the context has ended it is the
// placement itself.
func TestExactShorten(t *testing.T) {
	p, _ := sketched(t)
	x, err := NewExact(p)
	if err != nil {
		t.Fatal(err)
	}
	one := make([]uint8, p.Graph.NumOps())
	for _, run := range []int{4, WholeGroups} {
		best, score, spent := x.Shorten(t.Context(), one, 300, run, rand.NewPCG(2, 1))
		if spent > 300 || !score.Better(p.Evaluate(one)) || score != p.Evaluate(best) {
			t.Errorf("runs of %d: %v after %d evaluations of 300, one device %v, evaluated %v", run, score, spent, p.Evaluate(one), p.Evaluate(best))
		}
		if again, _, _ := x.Shorten(t.Context(), one, 300, run, rand.NewPCG(2, 1)); !slices.Equal(again, best) {
			t.Errorf("runs of %d: another placement under the same source", run)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if at, score, spent := x.Shorten(stopped, one, 300, 16, rand.NewPCG(2, 1)); !slices.Equal(at, one) || score != p.Evaluate(one) || spent != 1 {
		t.Errorf("%v after %d evaluations behind the end of its context", score, spent)
	}
}
