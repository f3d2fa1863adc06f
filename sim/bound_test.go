package sim

import (
	"context"
	"math/rand/v2"
	"placer/plan"
	"testing"

	"placer/graph"
	"placer/units"
)

// holds fails if any part of the bound exceeds t.
func holds(t *testing.T, seed uint64, b *Bound, seconds float64, what string) {
	t.Helper()
	if b.Impossible {
		t.Fatalf("seed %d: %s takes %v s, the bound says that no plan fits", seed, what, seconds)
	}
	for _, p := range b.Parts {
		if float64(p.Seconds) > seconds {
			t.Fatalf("seed %d: %s takes %v s, less than the bound %q of %v", seed, what, seconds, p.Name, p.Seconds)
		}
	}
}

func TestBoundHoldsForEveryPlan(t *testing.T) {
	tightest := map[string]int{}
	feasible := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := randomProblem(r, 40, 5)
		cfg := Config{Memory: seed%2 == 0}
		s := newSimulatorFor(t, p, cfg)
		b := s.LowerBound(t.Context())
		tightest[b.Tightest().Name]++
		for k := range 20 {
			p.device = randomPlacement(r, p.g, p.m.NumDevices())
			if k%2 == 0 { // crowded placements are the better ones
				only := uint8(r.IntN(p.m.NumDevices()))
				for i := range p.device {
					p.device[i] = only
				}
			}
			score := s.Evaluate(plan.Decision{Device: p.device, Priority: randomPriority(r, p.g.NumOps())})
			if score.Feasible() {
				feasible++
				holds(t, seed, b, score.Value, "a random plan")
			}
		}
	}
	if feasible < 5000 {
		t.Errorf("%d feasible plans, too few for a test", feasible)
	}
	for _, name := range []string{BoundCriticalPath, BoundWork, BoundWindow, BoundGroup, BoundMemory, BoundSplit} {
		if tightest[name] == 0 {
			t.Errorf("the bound %q is never the tightest", name)
		}
	}
}

// optimum tries every placement and every priority.
func optimum(s *Simulator) (best float64, found bool) {
	n, d := s.n, s.d
	device, priority := make([]uint8, n), make([]int32, n)
	best = inf
	var orders [][]int32
	var permute func(k int)
	permute = func(k int) {
		if k == n {
			orders = append(orders, append([]int32(nil), priority...))
		}
		for r := range n {
			used := false
			for _, x := range priority[:k] {
				used = used || int(x) == r
			}
			if !used && k < n {
				priority[k] = int32(r)
				permute(k + 1)
			}
		}
	}
	permute(0)
	for {
		group, together := map[int32]uint8{}, true
		for i, e := range device {
			if k := s.g.Op(graph.OpID(i)).Group; k > 0 {
				x, ok := group[k]
				together = together && (!ok || x == e)
				group[k] = e
			}
		}
		for _, o := range orders {
			if !together {
				break
			}
			if score := s.Evaluate(plan.Decision{Device: device, Priority: o}); score.Feasible() && score.Value < best {
				best, found = score.Value, true
			}
		}
		k := 0
		for ; k < n; k++ {
			if device[k]++; int(device[k]) < d {
				break
			}
			device[k] = 0
		}
		if k == n {
			return best, found
		}
	}
}

func TestBoundHoldsForTheOptimum(t *testing.T) {
	exact, impossible := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := randomProblem(r, 5, 3)
		for d := range p.m.Devices { // little memory, so that it forces decisions
			p.m.Devices[d].Memory = units.Bytes(4 + r.IntN(24))
		}
		s := newSimulatorFor(t, p, Config{Memory: seed%4 != 0})
		b := s.LowerBound(t.Context())
		best, found := optimum(s)
		if b.Impossible {
			impossible++
			if found {
				t.Fatalf("seed %d: a plan of %v s fits, the bound says that none does", seed, best)
			}
			continue
		}
		if !found {
			continue
		}
		holds(t, seed, b, best, "the best plan")
		if b.Gap(units.Seconds(best)) < 1e-9 {
			exact++
		}
	}
	if impossible == 0 {
		t.Error("no case is proven impossible, want some for a test")
	}
	if exact < 200 {
		t.Errorf("the bound meets the optimum in %d of 400 cases, want half", exact)
	}
}

// The parts that know of transfers hold against the best of all plans on hundreds of
// small graphs, and are often what makes the bound.
func TestTransfersHoldForTheOptimum(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	raised := 0
	for seed := range uint64(600) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 5)), 5, 3)
		s := newSimulatorFor(t, p, Config{})
		b := s.LowerBound(t.Context())
		best, found := optimum(s)
		if !found {
			continue
		}
		holds(t, seed, b, best, "the best plan")
		quick := s.QuickLowerBound().Seconds
		if b.Seconds > quick*(1+1e-9) {
			raised++
		}
		if x := s.LowerBound(ended).Seconds; x <= 0 || x > quick {
			t.Fatalf("seed %d: %v without time, want a part of %v", seed, x, quick)
		}
	}
	t.Logf("transfers raise %d of 600 bounds", raised)
	if raised < 20 {
		t.Errorf("transfers raise %d of 600 bounds, want more for a test", raised)
	}
}

// An op needs two results of a second each, and what they send takes three seconds.
func TestClusterOfAJoin(t *testing.T) {
	head, fastest := []float64{0, 0, 0}, []float64{1, 1, 1}
	b := &bounder{tables: &tables{n: 3}, fastest: fastest}
	b.raise(t.Context(), [][]edge{nil, nil, {{0, 3}, {1, 3}}}, head, func(k int) int { return k })
	if head[2] != 2 { // both on its device, one after the other; each from elsewhere comes at 4
		t.Errorf("the join starts at %g, want 2", head[2])
	}
	head = []float64{0, 0, 0}
	b.raise(t.Context(), [][]edge{nil, nil, {{0, 0.25}, {1, 3}}}, head, func(k int) int { return k })
	if head[2] != 1.25 { // the first may come from elsewhere
		t.Errorf("the join starts at %g, want 1.25", head[2])
	}
}

func TestBoundParts(t *testing.T) {
	build := func(f func(b *graph.Builder)) *graph.Graph {
		b := graph.NewBuilder("case")
		f(b)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	name := func(k int) string { return string(rune('a' + k)) }
	fork := build(func(b *graph.Builder) { // a, then b c d e, then f
		first := b.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{})
		var ends []graph.TensorID
		for k := range 4 {
			m := b.Op(graph.Op{Name: name(k + 1), Kind: "Add"}, []graph.TensorID{b.Output(first, 0)}, graph.Tensor{})
			ends = append(ends, b.Output(m, 0))
		}
		b.Op(graph.Op{Name: "f", Kind: "Add"}, ends)
	})
	two := build(func(b *graph.Builder) { // two independent ops of 10 B each
		b.Op(graph.Op{Name: "a", Kind: "VariableV2", Resident: 10}, nil)
		b.Op(graph.Op{Name: "b", Kind: "VariableV2", Resident: 10}, nil)
	})
	group := build(func(b *graph.Builder) { // independent ops, two of them together
		b.Op(graph.Op{Name: "a", Kind: "Add", Group: 1}, nil)
		b.Op(graph.Op{Name: "b", Kind: "Add", Group: 1}, nil)
	})
	tests := []struct {
		name    string
		g       *graph.Graph
		seconds [][]float64
		memory  units.Bytes
		part    string
		want    units.Seconds
	}{
		// 1 + 4/2 + 1: nothing can run beside a, nothing beside f.
		{"window", fork, [][]float64{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, 100, BoundWindow, 4},
		{"work", fork, [][]float64{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, 100, BoundWork, 3},
		{"path", fork, [][]float64{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, 100, BoundCriticalPath, 3},
		// A transfer of 0 B takes 1 s: 1 + 1 + 1 + 1, less than 6 on one device.
		{"split", fork, [][]float64{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, 100, BoundSplit, 4},
		// Speeds 1 and 1/2: 6 s of work at a rate of 3/2.
		{"speeds", fork, [][]float64{{1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2}}, 100, BoundWork, 4},
		{"group", group, [][]float64{{2, 3}, {2, 3}}, 100, BoundGroup, 5},
		// Device 1 is nine times slower, but device 0 holds only one of the two; the
		// dual charges half of the second op to device 1.
		{"memory", two, [][]float64{{1, 1}, {9, 9}}, 15, BoundMemory, 4.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := pairMachine(len(tt.seconds), 1, 1)
			for d := range m.Devices {
				m.Devices[d].Memory = tt.memory
			}
			s, err := New(tt.g, m, costTable(tt.seconds), Default())
			if err != nil {
				t.Fatal(err)
			}
			b := s.LowerBound(t.Context())
			for _, p := range b.Parts {
				if p.Name == tt.part {
					if diff := p.Seconds - tt.want; diff > 0 || diff < -tt.want*0.005 {
						t.Fatalf("%v, want %v", p.Seconds, tt.want)
					}
					return
				}
			}
			t.Fatalf("no part %q in %+v", tt.part, b)
		})
	}
}
