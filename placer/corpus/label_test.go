package corpus

import (
	"context"
	"testing"

	"placer/placer/problem"
	"placer/plan"
)

// TestLabelTakesItsSeconds: whatever a search takes to begin and an evaluation costs, the
// last search takes the seconds of a label and not much more, and the others a part of it.
func TestLabelTakesItsSeconds(t *testing.T) {
	for _, cost := range []struct{ begin, each, square float64 }{{0, 1e-3, 0}, {1, 1e-5, 0}, {3, 0.02, 0}, {25, 1, 0}, {0.1, 1e-4, 1e-9}} {
		cpu := 0.0
		var took []float64
		teach := func(_ context.Context, p *problem.Problem, n int, _ uint64) (plan.Decision, string, error) {
			x := float64(n)
			took = append(took, cost.begin+cost.each*x+cost.square*x*x)
			cpu += took[len(took)-1]
			return plan.Decision{Device: make([]uint8, p.Graph.NumOps())}, "none", nil
		}
		s := sample(t)
		p, err := s.Problems[0].Problem()
		if err != nil {
			t.Fatal(err)
		}
		x, err := label(t.Context(), Default(), 0, s.Problems[0].Recipe, p, teach, func() float64 { return cpu })
		if err != nil {
			t.Fatal(err)
		}
		last := took[len(took)-1]
		if x.CPUSeconds < 20 || last > 40 && len(took) > 1 || cpu-last > 20 {
			t.Errorf("%+v: searches of %.3g s, %d evaluations", cost, took, x.Evaluations)
		}
	}
}

// TestDraw: problems are drawn by seed and number alone, the families take turns, and
// none is larger than it may be.
func TestDraw(t *testing.T) {
	kinds := map[string]bool{}
	binds := 0
	const n = 28
	for i := range n {
		r, p, err := Draw(t.Context(), 1, i)
		if err != nil {
			t.Fatal(err)
		}
		kinds[r.Families[0]] = true
		if p.Graph.NumOps() > large.ops {
			t.Errorf("%s has %d ops", r.Net, p.Graph.NumOps())
		}
		if r.Machine.Memory > 0 {
			binds++
		}
		if i%9 > 0 {
			continue
		}
		again, q, err := Draw(t.Context(), 1, i)
		if err != nil || again.Net != r.Net || again.Machine.String() != r.Machine.String() || q.Graph.Hash() != p.Graph.Hash() || q.Machine.Hash() != p.Machine.Hash() {
			t.Errorf("drawn again: %+v, %v; first %+v", again, err, r)
		}
	}
	if len(kinds) < 25 || binds == 0 || binds == n {
		t.Errorf("%d families, memory binds in %d of %d", len(kinds), binds, n)
	}
}
