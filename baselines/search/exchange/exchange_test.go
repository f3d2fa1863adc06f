package exchange

import (
	"math"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/graph/unit"
	"placer/plan"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Method{Name: "exchange", New: func() (plan.Placer, error) { return Placer{}, nil }})
}

// Every pair comes once.
func TestPairs(t *testing.T) {
	for n := 2; n < 200; n += 7 {
		pairs := n * (n - 1) / 2
		seen := map[[2]int]bool{}
		step, k := stride(pairs), 3%pairs
		for range pairs {
			i, j := pair(k)
			if j < 0 || j >= i || i >= n {
				t.Fatalf("pair %d of %d changes is %d, %d", k, n, i, j)
			}
			seen[[2]int{i, j}] = true
			k = (k + step) % pairs
		}
		if len(seen) != pairs {
			t.Errorf("%d of %d pairs of %d changes", len(seen), pairs, n)
		}
	}
}

// To pass keeps priorities a permutation, and moves no other ops past one another.
func TestPass(t *testing.T) {
	for i := range int32(5) {
		for j := range int32(5) {
			d := plan.Decision{Priority: []int32{3, 0, 4, 1, 2}}
			was := slices.Clone(d.Priority)
			pass{i, j}.apply(d)
			sorted := slices.Clone(d.Priority)
			slices.Sort(sorted)
			if !slices.Equal(sorted, []int32{0, 1, 2, 3, 4}) || d.Priority[i] != was[j] {
				t.Fatalf("op %d to the place of op %d in %v gives %v", i, j, was, d.Priority)
			}
			for a := range int32(5) {
				for b := range int32(5) {
					if a != i && b != i && (was[a] < was[b]) != (d.Priority[a] < d.Priority[b]) {
						t.Errorf("op %d to the place of op %d in %v gives %v: ops %d and %d have changed places", i, j, was, d.Priority, a, b)
					}
				}
			}
		}
	}
}

// On tiny graphs it comes to the best of all placements, and evaluates none twice.
func TestBestOfAll(t *testing.T) {
	for _, c := range conformance.Tiny() {
		t.Run(c.Name, func(t *testing.T) {
			p, err := c.Problem()
			if err != nil {
				t.Fatal(err)
			}
			p.Budget.Evaluations = 1 << 20
			tried := map[string]bool{}
			inner := p.Evaluator
			p.JudgeBy(&watcher{inner, func(d plan.Decision) {
				if tried[string(d.Device)] {
					t.Errorf("%v is evaluated twice", d.Device)
				}
				tried[string(d.Device)] = true
			}})
			out, err := Placer{}.Place(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			units := p.Units.Levels[unit.Op]
			best := math.Inf(1)
			device := make([]uint8, p.Graph.NumOps())
			var all func(u int)
			all = func(u int) {
				if u == units.NumUnits() {
					if s := inner.Evaluate(plan.Decision{Device: device, Priority: p.Priority}); s.Feasible() {
						best = min(best, s.Value)
					}
					return
				}
				for d := range p.Machine.NumDevices() {
					for _, i := range units.Ops[u] {
						device[i] = uint8(d)
					}
					all(u + 1)
				}
			}
			all(0)
			if out.Score.Value > best*(1+1e-9) {
				t.Errorf("%g after %d evaluations, the best of all is %g", out.Score.Value, out.Evaluations, best)
			}
		})
	}
}

// watcher shows every decision.
type watcher struct {
	plan.Evaluator
	seen func(plan.Decision)
}

func (w *watcher) Evaluate(d plan.Decision) plan.Score {
	w.seen(d)
	return w.Evaluator.Evaluate(d)
}
