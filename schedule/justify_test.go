package schedule_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/placer/problem"
	"placer/plan"
	"placer/schedule"
	"placer/sim"
)

// TestJustified: from the end, d runs for 1 s, its input takes 3 s, c runs until the fifth second
// and a until the sixth; b runs in the first three. So c comes before b, and the step takes
// 6 s where it took 9.
func TestJustified(t *testing.T) {
	p := forked()
	p.Kernels = p.Evaluator.(*sim.Simulator).KernelCosts
	d := plan.Decision{Device: []uint8{0, 0, 0, 1}, Priority: []int32{0, 1, 2, 3}}
	if got := p.Evaluator.Evaluate(d).Value; got != 9 {
		t.Fatalf("the step takes %g s, want 9", got)
	}
	d.Priority = schedule.Justified(p, d)
	if want := []int32{0, 2, 1, 3}; !slices.Equal(d.Priority, want) {
		t.Errorf("priority %v, want %v", d.Priority, want)
	}
	if got := p.Evaluator.Evaluate(d).Value; got != 6 {
		t.Errorf("justified the step takes %g s, want 6", got)
	}
}

// TestJustifiedWithoutKernels: an objective that knows no kernels has the longest path.
func TestJustifiedWithoutKernels(t *testing.T) {
	p := forked()
	d := plan.Decision{Device: []uint8{0, 0, 0, 1}}
	if got, want := schedule.Justified(p, d), schedule.PlacedCriticalPath(p, d.Device); !slices.Equal(got, want) {
		t.Errorf("priority %v, want %v", got, want)
	}
}

// TestJustifiedIsTopological: no op comes before what it waits for in another kernel, and in the
// mean of random placements steps get shorter.
func TestJustifiedIsTopological(t *testing.T) {
	p, err := problem.Workload("gnmt:layers=2,source=6,target=6,batch=16,hidden=256,vocab=1000", "p100", 4, problem.Options{Tasks: plan.AllTasks})
	if err != nil {
		t.Fatal(err)
	}
	random, chains := rand.New(rand.NewPCG(1, 2)), p.Units.Levels[0]
	rules, costs := fuse.NewRules(p.Graph), p.Kernels()
	before, after := 0.0, 0.0
	for trial := range 20 {
		d := plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority}
		for _, ops := range chains.Ops {
			on := uint8(random.IntN(p.Machine.NumDevices()))
			for _, v := range ops {
				d.Device[v] = on
			}
		}
		kernel := make([]int32, p.Graph.NumOps())
		for v := range kernel {
			kernel[v] = int32(v)
		}
		if trial%2 == 0 {
			d.Fusion = fusion.Default(rules, d.Device)
			of, _ := costs.Fuse(d.Device, d.Fusion)
			copy(kernel, of)
		}
		before += p.Evaluator.Evaluate(d).Value
		d.Priority = schedule.Justified(&p.Problem, d)
		after += p.Evaluator.Evaluate(d).Value
		if err := (&plan.Plan{Decision: d}).Check(p.Graph, p.Machine); err != nil {
			t.Fatal(err)
		}
		for v := range p.Graph.NumOps() {
			wait := func(u graph.OpID) {
				if kernel[u] != kernel[v] && d.Priority[u] > d.Priority[v] {
					t.Fatalf("op %d has priority %d, op %d that it waits for %d", v, d.Priority[v], u, d.Priority[u])
				}
			}
			for _, in := range p.Graph.Inputs(graph.OpID(v)) {
				wait(p.Graph.Tensor(in).Producer)
			}
			for _, u := range p.Graph.Control(graph.OpID(v)) {
				wait(u)
			}
		}
	}
	if after >= before {
		t.Errorf("steps take %g s in the sum, justified %g", before, after)
	}
}
