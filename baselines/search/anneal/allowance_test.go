package anneal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
)

// mover returns a problem, where its ops are, and what moves from there may cost: what they hold,
// a quarter of all.
func mover(t *testing.T) (*plan.Problem, []uint8, *Allowance) {
	t.Helper()
	whole, err := problem.Workload("trfxl:layers=3,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", "p100", 3, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	home, rng := make([]uint8, p.Graph.NumOps()), rand.New(rand.NewPCG(3, 4))
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	for _, ops := range r.cells.fine.Ops {
		d := uint8(rng.IntN(3))
		for _, i := range ops {
			home[i] = d
		}
	}
	a, all := &Allowance{Cost: make([][]units.Bytes, len(home))}, units.Bytes(0)
	for i := range home {
		o := p.Graph.Op(graph.OpID(i))
		if o.Resident == 0 {
			continue
		}
		all += o.Resident
		a.Cost[i] = make([]units.Bytes, 3)
		for d := range a.Cost[i] {
			if uint8(d) != home[i] {
				a.Cost[i][d] = o.Resident
			}
		}
	}
	a.Most = all / 4
	return p, home, a
}

// Moves cost no more than is allowed, by books that agree with what they cost; decisions that cost
// nothing move all the same, and what is rejected is undone. Of a start that costs more some is
// taken back.
func TestAllowance(t *testing.T) {
	p, home, a := mover(t)
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	l, err := r.Shared.listingOf(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, recreates := range []bool{false, true} {
		w := newReplica(r.cells, exactObjective(r.p, r.cells), 3, rand.NewPCG(1, 2))
		w.allowance = a.of(r.cells.fine, 3)
		if recreates {
			w.recreation = newRecreation(l)
			w.recreation.allowance = w.allowance
		}
		start := r.cells.decisions(home, r.votes)
		for u := range start {
			start[u] = (start[u] + 1) % 3
		}
		w.start(start)
		if w.used > a.Most || w.used != w.allowance.spend(w.now) || w.used == 0 {
			t.Fatalf("a start that moves everything costs %v, by the books %v, want at most %v", w.allowance.spend(w.now), w.used, a.Most)
		}
		moved, spent := 0, 0
		for k := range 2000 {
			before := slices.Clone(w.now)
			w.undo = w.undo[:0]
			w.draw(16)
			if w.used > a.Most || w.used != w.allowance.spend(w.now) {
				t.Fatalf("move %d costs %v, by the books %v, want at most %v", k, w.allowance.spend(w.now), w.used, a.Most)
			}
			if len(w.undo) > 0 {
				moved++
			}
			if w.used != w.allowance.spend(before) {
				spent++
			}
			if k%2 == 0 {
				continue
			}
			for j := len(w.undo) - 1; j >= 0; j-- {
				w.put(w.undo[j].u, w.undo[j].old)
			}
			if !slices.Equal(before, w.now) {
				t.Fatalf("move %d is not undone", k)
			}
		}
		if moved < 1500 || spent < 100 {
			t.Errorf("recreates %v: %d of 2000 moves, %d that cost", recreates, moved, spent)
		}
	}
}

// A search from what is allowed ends with what is.
func TestAllowanceHolds(t *testing.T) {
	p, home, a := mover(t)
	p.Budget, p.Seed = plan.Budget{Evaluations: 150}, 1
	o, err := Placer{Starts: [][]uint8{home}, Allowance: a, Workers: 1}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var cost units.Bytes
	for i, c := range a.Cost {
		if c != nil {
			cost += c[o.Device[i]]
		}
	}
	if cost > a.Most {
		t.Errorf("the outcome costs %v, want at most %v", cost, a.Most)
	}
	if s := p.Evaluate(home); !o.Score.Better(s) {
		t.Errorf("%v, the start has %v", o.Score, s)
	}
}
