package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
	"placer/schedule"
)

// TestCoarseProblem: random placements of cells take about as long on a finely coarsened
// graph as on the ops, and the coarser graph is further off.
func TestCoarseProblem(t *testing.T) {
	for _, test := range []struct {
		workload string
		most     float64 // mean of the absolute difference of logarithms
	}{
		{"inception:batch=8,size=139", 0.02},
		{"gnmt:layers=2,source=6,target=6,batch=16,hidden=256,vocab=1000", 0.05},
	} {
		p, err := problem.Workload(test.workload, "p100", 4, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cells, link := p.Units.Levels[unit.Cell], schedule.InLatency(p.Machine)
		coarse, err := unit.Coarsen(p.Graph, cells, link)
		if err != nil {
			t.Fatal(err)
		}
		fine, err := unit.CoarsenFinely(p.Graph, cells, link)
		if err != nil {
			t.Fatal(err)
		}
		before, after := difference(t, &p.Problem, coarse), difference(t, &p.Problem, fine)
		if after > test.most || after > before {
			t.Errorf("%s: steps differ by %.2f%% from those of ops, and by %.2f%% on the coarser graph", test.workload, 100*after, 100*before)
		}
	}
}

// difference returns the mean difference, of logarithms, of steps of c and of p under the same
// random placements.
func difference(t *testing.T, p *plan.Problem, c *unit.Coarsened) float64 {
	t.Helper()
	q, err := schedule.CoarseProblem(p, c)
	if err != nil {
		t.Fatal(err)
	}
	cells := p.Units.Levels[unit.Cell]
	random := rand.New(rand.NewPCG(1, 1))
	device, nodes := make([]uint8, p.Graph.NumOps()), make([]uint8, c.Graph.NumOps())
	const trials = 20
	sum := 0.0
	for range trials {
		for _, ops := range cells.Ops {
			d := uint8(random.IntN(p.Machine.NumDevices()))
			for _, i := range ops {
				device[i], nodes[c.Of[i]] = d, d
			}
		}
		want := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: p.Priority})
		got := q.Evaluator.Evaluate(plan.Decision{Device: nodes, Priority: q.Priority})
		if !want.Feasible() || !got.Feasible() {
			t.Fatalf("%v and %v", want, got)
		}
		sum += math.Abs(math.Log(got.Value / want.Value))
	}
	return sum / trials
}
