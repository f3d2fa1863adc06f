package anneal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/baselines/conformance"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Method{
		Name: "anneal", New: func() (plan.Placer, error) { return Placer{}, nil }, Reaches: true,
	})
}

func problemOf(t *testing.T, name string) *plan.Problem {
	t.Helper()
	for _, c := range conformance.Cases() {
		if c.Name == name {
			p, err := c.Problem()
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	t.Fatalf("no case %q", name)
	return nil
}

// The outcome of a budget in evaluations does not depend on how the replicas are
// spread over goroutines.
func TestWorkersDoNotMatter(t *testing.T) {
	for _, name := range []string{"layered", "groups", "tight memory", "training step"} {
		t.Run(name, func(t *testing.T) {
			sameOnAnyWorkers(t, Placer{replicas: 3}, 500, func() *plan.Problem { return problemOf(t, name) })
		})
	}
	t.Run("guided", func(t *testing.T) {
		sameOnAnyWorkers(t, Placer{replicas: 3, Guide: towardsBalance{}}, 1000, func() *plan.Problem { return timed(t) })
	})
}

// sameOnAnyWorkers checks that a comes to the same on 1, 2 and 3 workers.
func sameOnAnyWorkers(t *testing.T, a Placer, evaluations int, of func() *plan.Problem) {
	t.Helper()
	var first *plan.Outcome
	for _, a.Workers = range []int{1, 2, 3} {
		p := of()
		p.Budget.Evaluations = evaluations
		o, err := a.Place(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = o
			continue
		}
		if !slices.Equal(o.Device, first.Device) || o.Score != first.Score || o.Evaluations != first.Evaluations {
			t.Errorf("%d workers: %v after %d evaluations, 1 worker: %v after %d", a.Workers, o.Score, o.Evaluations, first.Score, first.Evaluations)
		}
	}
}

func TestNeverWorseThanAStart(t *testing.T) {
	for _, name := range []string{"layered", "tight memory", "training step"} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(t, name)
			p.Budget.Evaluations = 3000
			good, err := Placer{}.Place(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for _, budget := range []int{1, 2, 20, 200} {
				p.Budget.Evaluations, p.Seed = budget, 7
				o, err := Placer{Starts: [][]uint8{good.Device}}.Place(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if good.Score.Better(o.Score) {
					t.Errorf("%d evaluations from %v end at %v", budget, good.Score, o.Score)
				}
			}
		})
	}
}

// A budget in seconds ends the search by the problem's clock.
func TestBudgetInSeconds(t *testing.T) {
	p := problemOf(t, "layered")
	now := 0.0
	p.Clock = func() float64 { now += 0.001; return now }
	p.Budget = plan.Budget{Seconds: 2}
	o, err := Placer{Workers: 1}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if now < 1.9 || now > 2.1 {
		t.Errorf("stopped at %.3f s after %d evaluations, want 2 s", now, o.Evaluations)
	}
}

// Whatever moves are made, the replica's books agree with its decisions, and what
// is rejected leaves no trace.
func TestMovesAndUndo(t *testing.T) {
	p := problemOf(t, "training step")
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	w := newReplica(r.cells, exactObjective(r.p, r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	w.start(make([]uint8, len(w.seconds)))
	for k, run := range []int{whole, 64, 4, 1} {
		for range 300 {
			before := slices.Clone(w.now)
			spent, cost := w.spent, w.cost
			w.step(0.01/float64(k+1), run)
			if w.spent > spent && w.cost == cost && w.score.Value == cost && !slices.Equal(before, w.now) && len(w.undo) == 0 {
				t.Fatal("decisions changed without a move")
			}
		}
	}
	busy := make([]float64, p.Machine.NumDevices())
	for u, d := range w.now {
		busy[d] += w.seconds[u]
		for _, i := range p.Units.Levels[unit.Cell].Ops[u] {
			if w.objective.device[i] != d {
				t.Fatalf("unit %d is on device %d, its op %d on %d", u, d, i, w.objective.device[i])
			}
		}
	}
	for d := range busy {
		if math.Abs(busy[d]-w.busy[d]) > 1e-9 {
			t.Errorf("device %d is said to be busy %v s, is %v s", d, w.busy[d], busy[d])
		}
	}
	if s := p.Evaluator.Evaluate(plan.Decision{Device: w.objective.device, Priority: p.Priority}); s != w.score {
		t.Errorf("score is %v, that of the decisions %v", w.score, s)
	}
	w.undo = w.undo[:0]
	before := slices.Clone(w.now)
	w.propose(whole)
	for k := len(w.undo) - 1; k >= 0; k-- {
		w.put(w.undo[k].u, w.undo[k].old)
	}
	if !slices.Equal(before, w.now) {
		t.Error("undoing a move did not restore the decisions")
	}
}

// What moves a forward decision with its counterpart takes the partial gradients made
// from it along; a move of it alone does not.
func TestPartialGradientsFollow(t *testing.T) {
	whole, err := problem.Workload("trfxl:layers=1,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", "p100", 2, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	w := newReplica(r.cells, exactObjective(r.p, r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	followed := 0
	for u, vs := range w.partial {
		for _, both := range []bool{false, true} {
			w.start(make([]uint8, len(w.seconds)))
			w.move([]int32{int32(u)}, 1, both)
			for _, v := range vs {
				if w.counterpart[v] != int32(u) || w.counterpart[u] == v {
					t.Errorf("decision %d, of counterpart %d, is said to be a partial gradient of %d, of counterpart %d", v, w.counterpart[v], u, w.counterpart[u])
				}
				if (w.now[v] == 1) != both {
					t.Errorf("partial gradient %d of decision %d is on device %d, moved with counterparts: %v", v, u, w.now[v], both)
				}
				followed++
			}
		}
	}
	if followed == 0 {
		t.Error("no partial gradients in Transformer-XL")
	}
}

// An unrolled network's time steps are among the starts, and of those of
// Transformer-XL the best.
func TestStartsWithTimeSteps(t *testing.T) {
	whole, err := problem.Workload("trfxl:layers=4,batch=16,sequence=128,segment=32,hidden=256,ffn=512,heads=4,head_dim=64,vocab=500", "p100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	want := p.Evaluator.Evaluate(plan.Decision{Device: p.Units.ByTimeStep(p.Graph).Blocks(p.Evaluator.OpSeconds(0), 4), Priority: p.Priority})
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	starts := r.starts()
	for k, s := range starts {
		if got := p.Evaluator.Evaluate(plan.Decision{Device: s, Priority: p.Priority}); k == len(starts)-1 && got != want || got.Better(want) {
			t.Errorf("start %d takes %v, blocks of time steps %v", k, got, want)
		}
	}
}

// A step allocates nothing.
func TestStepAllocatesNothing(t *testing.T) {
	p := problemOf(t, "training step")
	r := newRun(t.Context(), Placer{replicas: 1, Shared: new(Shared), stages: defaultStages}, p)
	w := newReplica(r.cells, exactObjective(r.p, r.cells), p.Machine.NumDevices(), rand.NewPCG(1, 2))
	w.start(make([]uint8, len(w.seconds)))
	if n := testing.AllocsPerRun(500, func() { w.step(0.01, 4) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// recurrent is two chains of cells of ten ops each, that exchange results.
func recurrent(t *testing.T, steps int) *plan.Problem {
	t.Helper()
	b := graph.NewBuilder("recurrent")
	n := 0
	op := func(kind graph.Kind, in ...graph.TensorID) graph.TensorID {
		n++
		return b.Output(b.Op(graph.Op{Name: fmt.Sprint(kind, n), Kind: kind, Forward: graph.None}, in, graph.Tensor{Bytes: 100}), 0)
	}
	h := []graph.TensorID{op("Placeholder"), op("Placeholder")}
	w := []graph.TensorID{op("VariableV2"), op("VariableV2")}
	for k := range steps {
		l := k % 2
		x := op("MatMul", h[l], w[l], h[1-l])
		for range 9 {
			x = op("Tanh", x)
		}
		h[l] = x
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	micros := make([]float64, n)
	for i := range micros {
		micros[i] = 10
	}
	c := conformance.Case{Graph: g, Machine: m, Costs: conformance.Costs{Micros: micros, Uniform: true}}
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// On a coarsened graph a move costs a fraction of an evaluation, and the outcome
// says how many there were.
func TestCoarsenedGraphIsCharged(t *testing.T) {
	p := recurrent(t, 40)
	p.Budget.Evaluations = 400
	count := 0
	p.Evaluator = &counting{p.Evaluator, &count}
	o, err := Placer{replicas: 1, stages: []stage{{coarse: true, run: whole, hot: 0.05, end: 0.001, share: 1}}}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "coarsened graph") {
		t.Errorf("notes %q, want one on the coarsened graph", o.Notes)
	}
	if o.Evaluations > 40 || o.Evaluations != count {
		t.Errorf("claims %d evaluations of the problem itself, made %d, want at most a handful", o.Evaluations, count)
	}
}

// A coarsened graph orders placements much like the problem: what annealing on it
// alone finds is better than the blocks it starts from.
func TestCoarsenedGraphLeadsDown(t *testing.T) {
	p := recurrent(t, 60)
	p.Budget.Evaluations = 300
	blocks := p.Evaluator.Evaluate(plan.Decision{Device: p.Units.Blocks(p.Evaluator.OpSeconds(0), 2), Priority: p.Priority})
	o, err := Placer{stages: []stage{{coarse: true, run: 4, hot: 0.05, end: 0.001, share: 1}}}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Score.Better(blocks) {
		t.Errorf("annealing on the coarsened graph gives %v, blocks %v", o.Score, blocks)
	}
}

type counting struct {
	plan.Evaluator
	n *int
}

func (c *counting) Evaluate(d plan.Decision) plan.Score {
	*c.n++
	return c.Evaluator.Evaluate(d)
}
