package exact

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

// checkProof compares the answer to p with the optimum, +Inf where nothing fits. It
// reports whether it was proven.
func checkProof(t *testing.T, p *plan.Problem, e Exact, optimum float64) bool {
	t.Helper()
	out, proof, err := e.Solve(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	reached := math.Inf(1)
	if out.Score.Feasible() {
		reached = out.Score.Value
	}
	if s := p.Evaluator.Evaluate(plan.Decision{Device: out.Device, Priority: p.Priority}); s != out.Score || reached < optimum*(1-1e-9) {
		t.Errorf("score %v, its placement's is %v, the optimum is %g", out.Score, s, optimum)
	}
	if proof.Bound > optimum*(1+1e-9) || proof.Impossible && !math.IsInf(optimum, 1) {
		t.Errorf("bound %g, impossible %v, the optimum is %g", proof.Bound, proof.Impossible, optimum)
	}
	if proof.Optimal != strings.HasPrefix(out.Notes[0], "OPTIMAL") || proof.Optimal && reached > optimum*(1+1e-9) {
		t.Errorf("%q of %g, the optimum is %g", out.Notes, reached, optimum)
	}
	return proof.Optimal
}

// By the largest load the search finds and proves what trying everything finds,
// and claims nothing more when it is stopped early.
func TestLargestLoadAgainstExhaustiveSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 21))
	proven, early := 0, 0
	for k := range 150 {
		s, err := throughputtest.Random(rng, 1+rng.IntN(8))
		if err != nil {
			t.Fatal(err)
		}
		e, err := throughput.NewEvaluator(s)
		if err != nil {
			t.Fatal(err)
		}
		x := e.Instance()
		best := throughputtest.Optimum(x, nil)
		p := &plan.Problem{Graph: s.Graph, Machine: s.Machine, Evaluator: e, Objective: plan.Throughput, Seed: uint64(k)}
		if optimal := checkProof(t, p, Exact{}, best); optimal != !math.IsInf(best, 1) {
			t.Errorf("case %d: optimal %v, the optimum is %g", k, optimal, best)
		} else if optimal {
			proven++
		}
		if checkProof(t, p, Exact{Nodes: 3}, best) {
			early++
		}
	}
	if proven < 80 || early >= proven {
		t.Errorf("%d proven, %d of these within three nodes", proven, early)
	}
}

// Graphs of more blocks than are searched have the start, and a note that says so.
func TestLargestLoadOfManyOps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	cases, declined := 0, 0
	for k := range 40 {
		s, err := throughputtest.Random(rng, 160)
		if err != nil {
			t.Fatal(err)
		}
		e, err := throughput.NewEvaluator(s)
		if err != nil {
			t.Fatal(err)
		}
		if cases == 6 || e.Instance().NumBlocks() <= maxOps {
			continue
		}
		cases++
		p := &plan.Problem{Graph: s.Graph, Machine: s.Machine, Evaluator: e, Objective: plan.Throughput, Seed: uint64(k)}
		out, proof, err := Exact{Nodes: 1000}.Solve(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if proof.Nodes > 0 || out.Evaluations != 1 {
			t.Errorf("case %d: %d nodes, %d evaluations, want the start alone", k, proof.Nodes, out.Evaluations)
		}
		if strings.Contains(out.Notes[0], "too many to search, at most 64") && !proof.Optimal {
			declined++
		}
	}
	if cases < 6 || declined < 3 {
		t.Errorf("%d cases, %d declined", cases, declined)
	}
}

// stoppedBy ends a search at its first evaluation.
type stoppedBy struct {
	*throughput.Evaluator
	stop context.CancelFunc
}

func (s stoppedBy) Evaluate(d plan.Decision) plan.Score {
	defer s.stop()
	return s.Evaluator.Evaluate(d)
}

// A search that is stopped before it branches has proven nothing.
func TestLargestLoadStopped(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 22))
	stopped := 0
	for k := range 40 {
		s, err := throughputtest.Random(rng, 8)
		if err != nil {
			t.Fatal(err)
		}
		e, err := throughput.NewEvaluator(s)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		p := &plan.Problem{Graph: s.Graph, Machine: s.Machine, Evaluator: stoppedBy{e, stop}, Objective: plan.Throughput, Seed: uint64(k)}
		out, proof, err := Exact{}.Solve(ctx, p)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if out.Score.Value == 0 {
			continue // no load is lower
		}
		if proof.Optimal || proof.Impossible || !strings.Contains(out.Notes[0], "stopped after 0 nodes") {
			t.Errorf("case %d: %+v, %q", k, proof, out.Notes)
		} else {
			stopped++
		}
	}
	if stopped == 0 {
		t.Error("none was stopped")
	}
}

// By peak memory the search finds and proves the lowest peak under the problem's
// scheduler.
func TestPeakAgainstExhaustiveSearch(t *testing.T) {
	proven, early := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 22))
		p := random(t, r, 3+int(seed%5), 2+int(seed%2), sim.Config{Memory: true})
		p.Evaluator, p.Objective = sim.NewPeak(p.Evaluator.(*sim.Simulator)), plan.Memory
		of := p.Units.Levels[unit.Op]
		device, best := make([]uint8, p.Graph.NumOps()), math.Inf(1)
		throughputtest.All(of.NumUnits(), p.Machine.NumDevices(), func(units []uint8) {
			for i, u := range of.Of {
				device[i] = units[u]
			}
			if s := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: p.Priority}); s.Feasible() {
				best = min(best, s.Value)
			}
		})
		if optimal := checkProof(t, p, Exact{}, best); optimal != !math.IsInf(best, 1) {
			t.Errorf("seed %d: optimal %v, the optimum is %g", seed, optimal, best)
		} else if optimal {
			proven++
		}
		if checkProof(t, p, Exact{Nodes: 3}, best) {
			early++
		}
	}
	if proven < 20 || early >= proven {
		t.Errorf("%d proven, %d of these within three nodes", proven, early)
	}
}
