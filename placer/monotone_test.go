package placer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
)

// randomGraph has n ops in layers: products, elementwise ops and weights.
func randomGraph(t *testing.T, seed uint64) *graph.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	b := graph.NewBuilder(fmt.Sprint("random", seed))
	n := 6 + r.IntN(10)
	var made []graph.TensorID
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Add", Bytes: graph.Auto, Forward: graph.None}
		var in []graph.TensorID
		for range 1 + r.IntN(2) {
			if len(made) > 0 {
				in = append(in, made[len(made)-1-r.IntN(min(len(made), 5))])
			}
		}
		if r.IntN(2) == 0 {
			m := int64(64 << r.IntN(4))
			o.Kind, o.GEMM = "MatMul", graph.GEMM{Batch: 1, M: m, N: 1024, K: int64(256 << r.IntN(4))}
			o.FLOPs = o.GEMM.FLOPs()
			w := b.Op(graph.Op{Name: fmt.Sprint("w", i), Kind: "Initializer", Resident: 1 << 20, Params: 1 << 18, Forward: graph.None}, nil, graph.Tensor{Bytes: 1 << 20, Resident: true})
			in = append(in, b.Output(w, 0))
		} else {
			o.FLOPs = 1e6
		}
		x := b.Op(o, in, graph.Tensor{Shape: graph.Shape{int64(1+r.IntN(64)) * 1024}, Bytes: graph.Auto})
		made = append(made, b.Output(x, 0))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// ends searches as the command does, with some of its methods, and returns the best
// value.
func ends(t *testing.T, g *graph.Graph, m *hw.Machine, tasks plan.Tasks) *search.Result {
	t.Helper()
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	c := search.Default()
	c.Budget, c.Fewer, c.Workers = plan.Budget{Evaluations: 40}, true, 1
	var some []search.Method
	for _, x := range methods.ForSearch(methods.Of(p), methods.Default()) {
		switch x.Name {
		case "single", "roundrobin", "heft", "etf", "random-best", "local", "anneal", "polish":
			some = append(some, x)
		}
	}
	still := func() float64 { return 0 }
	r, err := search.Search(context.Background(), p, some, c, search.Host{Clock: still, CPU: still})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// No number of GPUs ends behind a smaller one, on 200 random graphs: the searches on the
// smaller numbers are part of that on the larger.
func TestMoreGPUsAreNeverWorse(t *testing.T) {
	gained := 0
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		tasks := plan.Place
		if seed%2 == 0 {
			tasks = plan.AllTasks
		}
		least := math.Inf(1)
		for gpus := 1; gpus <= 4; gpus++ {
			m, err := hw.Take("p100", gpus, false)
			if err != nil {
				t.Fatal(err)
			}
			r := ends(t, g, m, tasks)
			value := r.Rows[r.Best].Score.Value
			if value > least*(1+2e-6) {
				t.Errorf("graph %d: %.6g ms on %d GPUs, %.6g ms on fewer", seed, value*1e3, gpus, least*1e3)
			}
			if r.Row(search.FewerMethod) != nil {
				gained++
			}
			least = min(least, value)
		}
	}
	if gained == 0 {
		t.Error("no search gained from fewer GPUs: the test shows nothing")
	}
	t.Logf("%d of 600 searches ended with a plan of fewer GPUs", gained)
}

// Faster links, and more budget, never end behind the plan that was found before where
// the search is given it. That the plan itself takes no longer on faster links holds for
// almost all of them and is proven for none: a device runs the op that is ready, so that
// an earlier arrival can delay what matters more (Graham 1969).
func TestGivenPlansAreNeverLost(t *testing.T) {
	anomalies := 0
	for seed := range uint64(200) {
		g := randomGraph(t, seed)
		var last plan.Decision
		var before float64
		for k, speed := range []float64{1, 4, 16} {
			m, err := hw.Take("p100", 3, false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Links {
				m.Links[i].Bandwidth *= units.BytesPerSecond(speed)
			}
			p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: plan.AllTasks})
			if err != nil {
				t.Fatal(err)
			}
			c := search.Default()
			c.Budget, c.Workers = plan.Budget{Evaluations: 20}, 1
			some := []search.Method{}
			if k > 0 {
				some = append(some, methods.Given([]plan.Decision{last}))
			}
			for _, x := range methods.ForSearch(methods.Of(p), methods.Default()) {
				if x.Name == "heft" || x.Name == "anneal" {
					some = append(some, x)
				}
			}
			still := func() float64 { return 0 }
			r, err := search.Search(context.Background(), p, some, c, search.Host{Clock: still, CPU: still})
			if err != nil {
				t.Fatal(err)
			}
			best := &r.Rows[r.Best]
			if k > 0 {
				given := p.Evaluator.Evaluate(last.Or(plan.Decision{Priority: p.Priority})).Value
				if best.Score.Value > given*(1+2e-6) {
					t.Errorf("graph %d: %.6g ms, the plan given takes %.6g ms", seed, best.Score.Value*1e3, given*1e3)
				}
				if given > before*(1+2e-6) {
					anomalies++
				}
			}
			last, before = best.Decision.Clone(), best.Score.Value
		}
	}
	t.Logf("%d of 400 plans take longer on four times faster links", anomalies)
}
