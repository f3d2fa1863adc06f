package anneal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
)

func jointProblem(t *testing.T, tasks plan.Tasks, evaluations int) *plan.Problem {
	t.Helper()
	whole, err := problem.Workload("rnnlm:layers=2,unroll=3", "v100", 2, problem.Options{Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	p.Tasks, p.Budget.Evaluations = tasks, evaluations
	if !tasks.Has(plan.Place) {
		p.Device = p.Units.Blocks(p.Evaluator.OpSeconds(0), 2)
	}
	return p
}

// Every set of tasks: the outcome decides on nothing else, is valid, has the score
// it says, is no worse than what was given, and one seed gives one outcome.
func TestJointTasks(t *testing.T) {
	for tasks := plan.Place; tasks <= plan.AllTasks; tasks++ {
		t.Run(tasks.String(), func(t *testing.T) {
			p := jointProblem(t, tasks, 200)
			n := 0
			p.Evaluator, p.Moves = &counting{p.Evaluator, &n}, nil
			o, err := Placer{Workers: 1, replicas: 1}.Place(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if n > 201 || o.Evaluations > n {
				t.Errorf("%d evaluations of 200, the outcome says %d", n, o.Evaluations)
			}
			check := plan.Plan{Decision: o.Decision}
			if err := check.Check(p.Graph, p.Machine); err != nil {
				t.Error(err)
			}
			if check.Priority == nil {
				check.Priority = p.Priority
			}
			if s := p.Evaluator.Evaluate(plan.Decision{Device: check.Device, Priority: check.Priority, Fusion: check.Fusion}); s != o.Score {
				t.Errorf("the outcome says %v, it has %v", o.Score, s)
			}
			if !tasks.Has(plan.Place) {
				if !slices.Equal(o.Device, p.Device) {
					t.Error("the placement that was given has changed")
				}
				if given := p.Evaluate(p.Device); !o.Score.Better(given) {
					t.Errorf("%v, no better than what was given: %v", o.Score, given)
				}
			}
			if !tasks.Has(plan.Schedule) && o.Priority != nil && !slices.Equal(o.Priority, p.Priority) {
				t.Error("the priorities that were given have changed")
			}
			if !tasks.Has(plan.Fuse) && o.Fusion != nil {
				t.Error("ops were fused")
			}
			again, err := Placer{Workers: 1, replicas: 1}.Place(t.Context(), jointProblem(t, tasks, 200))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(again.Device, o.Device) || !slices.Equal(again.Priority, o.Priority) || !slices.Equal(again.Fusion, o.Fusion) {
				t.Error("another run of the same seed gives another outcome")
			}
		})
	}
}

// The annealer starts from what it is given and stops when it is told to.
func TestJointStartsFromAndStops(t *testing.T) {
	p := jointProblem(t, plan.AllTasks, 300)
	first, err := Placer{Workers: 1, replicas: 1}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	q := jointProblem(t, plan.Schedule|plan.Fuse, 1<<30)
	q.Device = first.Device
	n := 0
	q.Evaluator, q.Moves = stopping{q.Evaluator, &n, stop}, nil
	again, err := Placer{Workers: 1, replicas: 1, From: []plan.Decision{{Device: first.Device, Priority: first.Priority, Fusion: first.Fusion}}}.Place(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if first.Score.Better(again.Score) {
		t.Errorf("%v after a start from %v", again.Score, first.Score)
	}
}

// stopping calls stop at the 50th evaluation.
type stopping struct {
	plan.Evaluator
	n    *int
	stop func()
}

func (s stopping) Evaluate(d plan.Decision) plan.Score {
	if *s.n++; *s.n == 50 {
		s.stop()
	}
	return s.Evaluator.Evaluate(d)
}

func (s stopping) Clone() plan.Evaluator { return stopping{s.Evaluator.Clone(), s.n, s.stop} }

// A fusion that is given counts where it is not decided on.
func TestFusionGiven(t *testing.T) {
	p := jointProblem(t, plan.Place, 100)
	p.Fusion = fusion.All(p.Graph.NumOps())
	o, err := Placer{Workers: 1, replicas: 1}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Evaluate(o.Device); s != o.Score {
		t.Errorf("the outcome says %v, it has %v under the fusion given", o.Score, s)
	}
}

// However keys are shifted, the order is that of the keys, and undo takes back
// all since keep.
func TestKeys(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		k := newKeys(n)
		start := make([]int32, n)
		for i, x := range r.Perm(n) {
			start[i] = int32(x)
		}
		k.set(start)
		kept := slices.Clone(k.rank)
		for range 30 {
			var ops []int32
			for i := range n {
				if r.IntN(5) == 0 {
					ops = append(ops, int32(i))
				}
			}
			k.shift(ops, float64(r.IntN(9)-4))
			if want := sim.RankByKey(k.key); !slices.Equal(k.rank, want) {
				t.Fatalf("seed %d: ranks %v, by key %v", seed, k.rank, want)
			}
			switch r.IntN(4) {
			case 0:
				k.keep()
				kept = slices.Clone(k.rank)
			case 1:
				k.undo()
				if !slices.Equal(k.rank, kept) || !slices.Equal(k.rank, sim.RankByKey(k.key)) {
					t.Fatalf("seed %d: ranks %v after undo, %v before", seed, k.rank, kept)
				}
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	p := jointProblem(t, plan.Fuse, 1)
	r := fuse.NewRules(p.Graph)
	ps, n := newPatterns(r), 0
	for id, ops := range ps.ops {
		n += len(ops)
		for _, i := range ops {
			if ps.of[i] != int32(id) || p.Graph.Op(graph.OpID(i)).Kind != p.Graph.Op(graph.OpID(ops[0])).Kind {
				t.Fatalf("op %d is of pattern %d, listed with %d", i, ps.of[i], id)
			}
		}
	}
	if n != len(r.Fusible()) || len(ps.ops) < 5 || len(ps.ops) > n/3 {
		t.Errorf("%d patterns of %d ops, %d can be fused", len(ps.ops), n, len(r.Fusible()))
	}
}

// Where nothing can be fused there is nothing to decide.
func TestNothingToFuse(t *testing.T) {
	p, err := conformance.Cases()[2].Problem() // a chain of products
	if err != nil {
		t.Fatal(err)
	}
	p.Tasks, p.Budget.Evaluations, p.Device = plan.Fuse, 50, make([]uint8, p.Graph.NumOps())
	o, err := Placer{Workers: 1}.Place(t.Context(), p)
	if err != nil || o.Score != p.Evaluate(p.Device) {
		t.Errorf("outcome %+v, error %v", o, err)
	}
}

// Without a placement that is given, or asked for, there is none, whatever a start has.
func TestNoPlacement(t *testing.T) {
	p := jointProblem(t, plan.Schedule|plan.Fuse, 50)
	start := plan.Decision{Device: p.Device, Fusion: fusion.All(p.Graph.NumOps())}
	p.Device = nil
	for _, a := range []Placer{{}, {From: []plan.Decision{start}}, {Starts: [][]uint8{start.Device}}} {
		if o, err := a.Place(t.Context(), p); !errors.Is(err, errNoDevice) {
			t.Errorf("%+v, error %v, want %v", o, err, errNoDevice)
		}
	}
}
