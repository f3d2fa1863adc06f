package anneal

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
	"placer/schedule"
)

// sketched returns a problem and its Sketch.
func sketched(t *testing.T) (*plan.Problem, *Sketch) {
	t.Helper()
	p, err := problem.Workload("gnmt:layers=2,source=4,target=4,batch=16,hidden=128,vocab=1000", "p100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewSketch(&p.Problem)
	if err != nil || x == nil {
		t.Fatalf("no sketch (%v)", err)
	}
	return &p.Problem, x
}

// TestSketchOfLittle: a coarsened graph that saves little is none.
func TestSketchOfLittle(t *testing.T) {
	if x, err := NewSketch(problemOf(t, "layered")); err != nil || x != nil {
		t.Errorf("a sketch of a graph whose every op is a cell (%v)", err)
	}
}

// TestSketchSeconds: the step of a placement is that of the coarsened problem, whatever was
// asked before.
func TestSketchSeconds(t *testing.T) {
	p, x := sketched(t)
	c, err := unit.CoarsenFinely(p.Graph, p.Units.Levels[unit.Cell], schedule.InLatency(p.Machine))
	if err != nil {
		t.Fatal(err)
	}
	q, err := schedule.CoarseProblem(p, c)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	cells := p.Units.Levels[unit.Cell]
	for range 20 {
		device, coarse := make([]uint8, p.Graph.NumOps()), make([]uint8, c.Graph.NumOps())
		for u := range cells.Ops {
			d := uint8(random.IntN(p.Machine.NumDevices()))
			for _, i := range cells.Ops[u] {
				device[i], coarse[c.Of[i]] = d, d
			}
		}
		want := q.Evaluator.Evaluate(plan.Decision{Device: coarse, Priority: q.Priority})
		if got := x.Seconds(device); !want.Feasible() || got != want.Value {
			t.Errorf("%v, the coarsened problem has %v", got, want)
		}
	}
}

// TestSketchShorten: what it comes to is shorter, the same under the same source, and the
// placement itself where the context has ended.
func TestSketchShorten(t *testing.T) {
	p, x := sketched(t)
	one := make([]uint8, p.Graph.NumOps())
	best := x.Shorten(t.Context(), one, 500, rand.NewPCG(2, 1))
	if before, after := x.Seconds(one), x.Seconds(best); after >= before {
		t.Errorf("one device takes %v, shortened %v", before, after)
	}
	if again := x.Shorten(t.Context(), one, 500, rand.NewPCG(2, 1)); !slices.Equal(again, best) {
		t.Error("another placement under the same source")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if at := x.Shorten(stopped, one, 500, rand.NewPCG(2, 1)); !slices.Equal(at, one) {
		t.Error("it goes on behind the end of its context")
	}
}

// TestSketchOfMany: where the fine graph saves too little, the coarser one serves.
func TestSketchOfMany(t *testing.T) {
	p, err := problem.Workload("resnext:blocks=4,batch=2,size=63", "p100", 2, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cells, link, most := p.Units.Levels[unit.Cell], schedule.InLatency(p.Machine), int(mostNodes*float64(p.Graph.NumOps()))
	fine, err := unit.CoarsenFinely(p.Graph, cells, link)
	if err != nil {
		t.Fatal(err)
	}
	coarse, err := unit.Coarsen(p.Graph, cells, link)
	if err != nil {
		t.Fatal(err)
	}
	if fine.Graph.NumOps() <= most || coarse.Graph.NumOps() > most {
		t.Fatalf("%d and %d nodes, want %d between them", coarse.Graph.NumOps(), fine.Graph.NumOps(), most)
	}
	x, err := NewSketch(&p.Problem)
	if err != nil || x == nil || x.nodes != coarse.Graph.NumOps() {
		t.Errorf("%v (%v), want one on %d nodes", x, err, coarse.Graph.NumOps())
	}
}
