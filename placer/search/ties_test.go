package search

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
)

// products is a chain of n products with a weight each: ops 0 the input, then weight and
// product in turn.
func products(t *testing.T, n int) *problem.Problem {
	t.Helper()
	b := graph.NewBuilder("products")
	tensor := func(k graph.Kind, name string, in ...graph.TensorID) graph.TensorID {
		o := graph.Op{Name: name, Kind: k, Bytes: graph.Auto, Forward: graph.None}
		out := graph.Tensor{Shape: graph.Shape{512, 512}, Bytes: graph.Auto}
		if k == "Initializer" {
			o.Resident, out.Resident = 1<<20, true
		} else if k == "MatMul" {
			o.GEMM = graph.GEMM{Batch: 1, M: 512, N: 512, K: 512}
			o.FLOPs = o.GEMM.FLOPs()
		}
		return b.Output(b.Op(o, in, out), 0)
	}
	x := tensor("Placeholder", "x")
	for i := range n {
		x = tensor("MatMul", fmt.Sprint("y", i), x, tensor("Initializer", fmt.Sprint("w", i)))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Of rows that are equal, that on the fewest devices counts, then that which sends least,
// then the first.
func TestChoose(t *testing.T) {
	p := products(t, 2) // x, w0, y0, w1, y1
	row := func(value float64, device ...uint8) *Row {
		return &Row{Score: plan.Score{Value: value}, Decision: plan.Decision{Device: device}}
	}
	for _, c := range []struct {
		name string
		rows []*Row
		want int
	}{
		{"the best", []*Row{row(2, 0, 0, 0, 0, 0), row(1, 0, 1, 2, 3, 0)}, 1},
		{"fewer devices", []*Row{row(1, 0, 0, 0, 0, 1), row(1, 1, 1, 1, 1, 1)}, 1},
		{"fewer devices within a tie", []*Row{row(1, 0, 0, 0, 0, 1), row(1+5e-7, 1, 1, 1, 1, 1)}, 1},
		{"no tie", []*Row{row(1, 0, 0, 0, 0, 1), row(1+5e-6, 1, 1, 1, 1, 1)}, 0},
		{"less traffic", []*Row{row(1, 0, 1, 0, 1, 0), row(1, 0, 0, 0, 1, 0), row(1, 0, 0, 0, 1, 0)}, 1},
		{"what fits", []*Row{{Score: plan.Score{Value: 1, Overflow: 9}, Decision: plan.Decision{Device: []uint8{0, 0, 0, 0, 0}}}, row(2, 0, 0, 0, 1, 1)}, 1},
		{"nothing", []*Row{nil, nil}, -1},
	} {
		if got := choose(p.Graph, c.rows); got != c.want {
			t.Errorf("%s: row %d, want %d", c.name, got, c.want)
		}
	}
}

// Weights that lie elsewhere go where they are read, at the same step, and devices that
// hold nothing else are given up.
func TestTidy(t *testing.T) {
	p := products(t, 6)
	device := make([]uint8, p.Graph.NumOps())
	for i := range device {
		if p.Graph.Op(graph.OpID(i)).Kind == "Initializer" && i > 3 {
			device[i] = uint8(1 + i%3)
		}
	}
	d := plan.Decision{Device: device, Priority: p.Priority}
	before := p.Evaluator.Evaluate(d)
	if plan.DevicesOf(device) != 4 || Traffic(p.Graph, device) == 0 {
		t.Fatalf("%d devices, %v sent", plan.DevicesOf(device), Traffic(p.Graph, device))
	}
	after, tries := tidy(p.Graph, p.Evaluator.Clone(), d, before.Overflow, upTo(before.Value))
	if plan.DevicesOf(after.Device) != 1 || Traffic(p.Graph, after.Device) != 0 || tries > tidyTries {
		t.Errorf("%d devices, %v sent after %d evaluations, want 1 and nothing", plan.DevicesOf(after.Device), Traffic(p.Graph, after.Device), tries)
	}
	if now := p.Evaluator.Evaluate(after); !tied(now.Value, before.Value) {
		t.Errorf("the step became %v, was %v", now.Value, before.Value)
	}
	if !slices.Equal(device, d.Device) {
		t.Error("the decision given was changed")
	}
}

// A plan that needs its devices keeps them.
func TestTidyKeepsWhatPays(t *testing.T) {
	b := graph.NewBuilder("two")
	for k := range 2 {
		m := graph.GEMM{Batch: 1, M: 2048, N: 2048, K: 2048}
		b.Op(graph.Op{Name: fmt.Sprint("y", k), Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs(), Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{2048, 2048}, Bytes: graph.Auto})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, _ := hw.Take("p100", 2, false)
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Decision{Device: []uint8{0, 1}, Priority: p.Priority}
	s := p.Evaluator.Evaluate(d)
	if after, _ := tidy(g, p.Evaluator, d, s.Overflow, upTo(s.Value)); plan.DevicesOf(after.Device) != 2 {
		t.Error("a device that halves the step was given up")
	}
}

// TestReferences: one device and the rules are judged under the tasks of the search, with
// fusion where the search decides on it, and are the result where nothing is better.
func TestReferences(t *testing.T) {
	b := graph.NewBuilder("elementwise")
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{1 << 20}, Bytes: graph.Auto}), 0)
	for k := range 6 {
		x = b.Output(b.Op(graph.Op{Name: fmt.Sprint("y", k), Kind: "Relu", FLOPs: 1 << 20, Bytes: graph.Auto, Forward: graph.None}, []graph.TensorID{x}, graph.Tensor{Shape: graph.Shape{1 << 20}, Bytes: graph.Auto}), 0)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, _ := hw.Take("p100", 2, false)
	for _, tasks := range []plan.Tasks{plan.Place, plan.AllTasks} {
		p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: tasks})
		if err != nil {
			t.Fatal(err)
		}
		apart := plan.Decision{Device: []uint8{0, 0, 0, 0, 1, 1, 1}}
		method := Method{Name: "apart", Kind: plan.Baseline, New: func(Start) (plan.Placer, error) { return fixedPlan{apart}, nil }}
		still := func() float64 { return 0 }
		c := Default()
		c.Budget = plan.Budget{Evaluations: 5}
		r, err := Search(t.Context(), p, []Method{method}, c, Host{Clock: still, CPU: still})
		if err != nil {
			t.Fatal(err)
		}
		one, rule := r.References.OneDevice, r.References.Rule
		if r.Rows[r.Best].Method != OneDeviceMethod || rule.Method != "apart" || !one.Score.Better(rule.Score) {
			t.Errorf("tasks %v: best %s, one device %v, the rule %v", tasks, r.Rows[r.Best].Method, one.Score, rule.Score)
		}
		if fused := tasks.Has(plan.Fuse); (one.Fusion != nil) != fused || (rule.Fusion != nil) != fused {
			t.Errorf("tasks %v: one device fused %v, the rule %v", tasks, one.Fusion != nil, rule.Fusion != nil)
		}
	}
}

// fixedPlan is a method that gives one plan.
type fixedPlan struct{ d plan.Decision }

func (fixedPlan) Name() string    { return "apart" }
func (fixedPlan) Kind() plan.Kind { return plan.Baseline }
func (f fixedPlan) Place(_ context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return &plan.Outcome{Decision: f.d.Clone(), Score: p.Evaluate(f.d.Device), Evaluations: 1}, nil
}
