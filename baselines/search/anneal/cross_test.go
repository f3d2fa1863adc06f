package anneal

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
)

// crossing anneals beside placements that are drawn at random.
type crossing struct{ Placer }

func (c crossing) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		e := make([]uint8, p.Graph.NumOps())
		for i := range e {
			e[i] = uint8(rng.IntN(p.Machine.NumDevices()))
		}
		c.Elite = append(c.Elite, e)
	}
	return c.Placer.Place(ctx, p)
}

func TestCrossConforms(t *testing.T) {
	conformance.Run(t, conformance.Method{
		Name: "anneal", New: func() (plan.Placer, error) { return crossing{}, nil }, Reaches: true,
	})
}

// A placement whose equal devices have other names gets the names of the best back, and no
// work goes to a device of other figures.
func TestRenamed(t *testing.T) {
	m, err := hw.Take("p100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[3].Memory /= 2
	whole, err := problem.Workload("rnnlm:layers=2,unroll=4,batch=8,hidden=64,vocab=100", "p100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := whole.Problem
	p.Machine = m
	best := p.Units.Blocks(p.Evaluator.OpSeconds(0), 4)
	other := make([]uint8, len(best))
	for i, d := range best {
		other[i] = [4]uint8{2, 0, 1, 3}[d]
	}
	if got := renamed(&p, other, best); !slices.Equal(got, best) {
		t.Error("the names of equal devices matter")
	}
	for i, d := range best {
		other[i] = [4]uint8{3, 0, 1, 2}[d]
	}
	for i, d := range renamed(&p, other, best) {
		if (d == 3) != (other[i] == 3) {
			t.Fatalf("op %d is on device %d, it was on %d of other figures", i, d, other[i])
		}
	}
}

// A move takes over a part of an elite plan, and nothing but that; of plans in agreement
// there is none.
func TestCross(t *testing.T) {
	whole, err := problem.Workload("trfxl:layers=2,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", "p100", 3, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	w := newReplica(r.cells, r.exactObjective(r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	elite := make([]uint8, len(w.seconds))
	for u := range elite {
		elite[u] = uint8(u % 3)
	}
	w.elite = [][]uint8{elite}
	w.start(make([]uint8, len(elite)))
	if !w.moves.on[moveCross] || w.moves.on[moveRecreate] {
		t.Error("a replica with elite plans crosses, and one without a recreation recreates nothing")
	}
	all := 0
	for range 100 {
		w.undo = w.undo[:0]
		w.cross()
		if len(w.undo) == 0 {
			t.Fatal("nothing was taken over")
		}
		if len(w.undo) > len(elite)/2 {
			all++
		}
		for _, c := range w.undo {
			if w.now[c.u] != elite[c.u] {
				t.Fatalf("unit %d went to device %d, the elite plan has it on %d", c.u, w.now[c.u], elite[c.u])
			}
		}
		for _, c := range w.undo {
			w.put(c.u, c.old)
		}
	}
	if all > 50 {
		t.Errorf("%d of 100 moves took over more than half", all)
	}
	w.elite[0] = w.now
	w.undo = w.undo[:0]
	if w.cross(); len(w.undo) > 0 {
		t.Error("something was taken over from the same plan")
	}
}

func TestCrossingOnAnyWorkers(t *testing.T) {
	for name, a := range map[string]Placer{"cross": {}, "recreate": {Recreate: true}, "guided": {Guide: towardsBalance{}}} {
		t.Run(name, func(t *testing.T) {
			p := timed(t)
			a.Elite = [][]uint8{make([]uint8, p.Graph.NumOps()), p.Units.Blocks(p.Evaluator.OpSeconds(0), p.Machine.NumDevices())}
			sameOnAnyWorkers(t, a, 1000, func() *plan.Problem { return timed(t) })
		})
	}
}
