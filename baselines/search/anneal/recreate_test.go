package anneal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/placer/problem"
	"placer/plan"
)

func TestRecreateConforms(t *testing.T) {
	conformance.Run(t, conformance.Method{
		Name: "anneal", New: func() (plan.Placer, error) { return Placer{Recreate: true}, nil }, Reaches: true,
	})
}

// What is ruined is decided, and nothing else: the books of the recreation agree with the
// decisions, a counterpart that is ruined too shares its device where they are to be
// together, and nothing is put where its variables do not fit.
func TestRecreate(t *testing.T) {
	whole, err := problem.Workload("trfxl:layers=2,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", "p100", 3, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	l, err := r.Shared.listingOf(p)
	if err != nil {
		t.Fatal(err)
	}
	w := newReplica(r.cells, exactObjective(r.p, r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	w.recreation = newRecreation(l)
	w.start(make([]uint8, len(w.seconds)))
	moved, apart := 0, 0
	for range 200 {
		before := slices.Clone(w.now)
		w.undo = w.undo[:0]
		w.recreate()
		x := w.recreation
		var held, load [3]float64
		for u, d := range w.now {
			if int32(d) != x.at[u] {
				t.Fatalf("unit %d is on device %d, decided for %d", u, d, x.at[u])
			}
			ruined := slices.Contains(x.ruined, int32(u))
			if d != before[u] {
				moved++
				if !ruined {
					t.Fatalf("unit %d moved and was not ruined", u)
				}
			}
			if q := w.counterpart[u]; q >= 0 && x.together && ruined && w.now[q] != d {
				apart++
			}
			held[d] += float64(l.resident[u])
			load[d] += l.work[d][u]
		}
		for d := range held {
			if float64(x.held[d]) != held[d] || x.load[d]-load[d] > 1e-9 || load[d]-x.load[d] > 1e-9 {
				t.Fatalf("device %d: %d bytes and %g s in the books, %g and %g in fact", d, x.held[d], x.load[d], held[d], load[d])
			}
		}
	}
	if moved < 200 || apart > 0 {
		t.Errorf("%d decisions moved, %d apart from counterparts that they were to be with", moved, apart)
	}
}
