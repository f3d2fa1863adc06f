package verdict_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/placer/verdict"
	"placer/plan"
	"placer/sim"
	"placer/units"
	"placer/workloads"
)

func load(t *testing.T, gpu string, gpus int, cpu bool) *hw.Machine {
	t.Helper()
	m, err := hw.Take(gpu, gpus, cpu)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMissing: where a step does not fit, the answer says what its plan lacks to the
// byte, and what every plan lacks.
func TestMissing(t *testing.T) {
	b := graph.NewBuilder("weights")
	var seconds []units.Seconds
	in := []graph.TensorID{}
	for k := range 4 { // each holds 6 MB and makes 1 MB
		op := b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "MatMul", Bytes: graph.Auto, Resident: 6e6, Forward: graph.None}, in, graph.Tensor{Bytes: 1e6})
		in = []graph.TensorID{b.Output(op, 0)}
		seconds = append(seconds, 1e-3)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := problem.Source{Graph: g, Seconds: seconds}
	answers := sweep(t, s, verdict.Config{Budget: plan.Budget{Evaluations: 100}}, star(4, 1e9, 10e6))
	for n, want := range []struct{ least, lacks units.Bytes }{
		{14e6, 14e6}, // 24 MB held, and tensors beside it
		{4e6, 8e6},   // two on each of two devices lack 4 MB each at least
		{0, 4e6},     // two have to be together somewhere
		{0, 0},
	} {
		a := &answers[n]
		one, _, err := problem.Simulator(s, a.On, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := one.Run(&plan.Plan{Decision: a.Decision}, sim.Options{})
		var lacks units.Bytes
		for d, peak := range r.PeakBytes {
			lacks += max(0, peak-a.On.Devices[d].Memory)
		}
		if a.Score.Overflow != lacks || a.AtLeast > lacks || !slices.Equal(a.Peak, r.PeakBytes) {
			t.Errorf("%d devices: the plan lacks %d bytes, by its peaks %d; every plan %d", n+1, a.Score.Overflow, lacks, a.AtLeast)
		}
		if lacks < want.lacks || lacks > want.lacks+3e6 || a.AtLeast > want.lacks || a.AtLeast < want.least || a.Score.Feasible() != (n == 3) {
			t.Errorf("%d devices: %d bytes are missing, at least %d; want about %d and %d", n+1, lacks, a.AtLeast, want.lacks, want.least)
		}
	}
}

// TestMachinesSeedEachOther: of two machines that differ in their links alone, the
// faster one is not worse, in one sweep, and each plan is for its machine.
func TestMachinesSeedEachOther(t *testing.T) {
	s := randomSource(198)
	slow, fast := star(3, 1e9, 1e9), star(3, 4e9, 1e9)
	fast.Name = "fast"
	answers := sweep(t, s, verdict.Config{Budget: plan.Budget{Evaluations: 100}}, slow, fast)
	if len(answers) != 6 {
		t.Fatalf("%d answers, want 6", len(answers))
	}
	for n := range 3 {
		a, b := answers[n], answers[n+3]
		if a.Machine != 0 || b.Machine != 1 || a.Devices != n+1 || b.Devices != n+1 || b.Score.Value > a.Score.Value*(1+rounding) {
			t.Errorf("%d devices: %g s, with faster links %g s", n+1, a.Score.Value, b.Score.Value)
		}
		for _, x := range []verdict.Answer{a, b} {
			p := plan.Plan{Decision: x.Decision}
			if err := p.Check(s.Graph, x.On); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSeconds: a budget in seconds is kept, and a budget of nothing has an answer all the
// same.
func TestSeconds(t *testing.T) {
	now := 0.0
	tick := func() float64 { now += 1e-4; return now }
	s := randomSource(3)
	m := star(3, 1e9, 1e9)
	for _, b := range []float64{1, 1e-9} {
		now = 0
		answers, _, err := verdict.Sweep(context.Background(), s, []verdict.Machine{{Machine: m}}, verdict.Config{Budget: plan.Budget{Seconds: b}, Seed: 1, Workers: 1, Methods: []string{"single", "anneal"}}, verdict.Host{Host: search.Host{Clock: tick, CPU: tick}})
		if err != nil {
			t.Fatal(err)
		}
		if len(answers) != 3 || now > 1.1*b+0.1 {
			t.Errorf("a budget of %g s: %d answers after %g s", b, len(answers), now)
		}
		for n := 1; n < 3; n++ {
			if answers[n].Score.Value > answers[n-1].Score.Value {
				t.Errorf("a budget of %g s: %d devices are worse", b, n+1)
			}
		}
	}
	// Where everything is slow, counts are left; and every machine has one answer.
	now = 0
	slow := func() float64 { now += 0.5; return now }
	two := []verdict.Machine{{Machine: m}, {Machine: star(3, 2e9, 1e9)}}
	answers, left, err := verdict.Sweep(t.Context(), s, two, verdict.Config{Budget: plan.Budget{Seconds: 1}, Seed: 1, Workers: 1, Methods: []string{"single"}}, verdict.Host{Host: search.Host{Clock: slow, CPU: slow}})
	if err != nil || len(answers) < 2 || len(answers)+len(left) != 6 || len(left) == 0 || left[len(left)-1] != (verdict.Left{Machine: 1, Devices: 3}) {
		t.Errorf("slow: %d answers, left %v: %v", len(answers), left, err)
	}
	for _, c := range []verdict.Config{{}, {Budget: plan.Budget{Seconds: -1}}, {Budget: plan.Budget{Seconds: 1}}, {Budget: plan.Budget{Seconds: 1}, Workers: 1, Counts: []int{2, 1}}} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	still := func() float64 { return 0 }
	if _, _, err := verdict.Sweep(context.Background(), s, []verdict.Machine{{Machine: m}}, verdict.Config{Counts: []int{9}, Budget: plan.Budget{Evaluations: 1}, Workers: 1}, verdict.Host{Host: search.Host{Clock: still, CPU: still}}); err == nil {
		t.Error("an answer for 9 of 3 devices")
	}
}

// TestSlowCounts: a count is not begun whose problem alone would take it behind the end and
// the overtime, as the counts before it show.
func TestSlowCounts(t *testing.T) {
	const each, budget = 5.0, 13.0 // seconds
	now, calls, end := 0.0, 0, 0.0
	clock := func() float64 {
		now += 1e-4
		if calls++; calls == 3 { // between a count's beginning and its search
			now += each
		}
		return now
	}
	m := star(6, 1e9, 1e9)
	answers, left, err := verdict.Sweep(t.Context(), randomSource(3), []verdict.Machine{{Machine: m}}, verdict.Config{Budget: plan.Budget{Seconds: budget}, Seed: 1, Workers: 1, Methods: []string{"single"}},
		verdict.Host{Host: search.Host{Clock: clock, CPU: func() float64 { return 0 }}, Tell: func(*verdict.Answer) { calls, end = 0, now }})
	if err != nil || len(answers) != 2 || len(left) != 4 || end > budget+2 {
		t.Errorf("%d answers, the last after %g s, left %v: %v", len(answers), end, left, err)
	}
}

func TestConclude(t *testing.T) {
	e := verdict.ModelError{Share: 0.02}
	type want struct {
		best, fewest, one int
		ties              []int
		enough            bool
	}
	for _, c := range []struct {
		name  string
		steps []float64 // by count; 0 does not fit
		want
	}{
		{"one is the best", []float64{1, 1, 1}, want{0, 0, 0, []int{1, 2}, true}},
		{"no better than is shown", []float64{1.0004, 1.0002, 1}, want{0, 0, 0, []int{1, 2}, true}},
		{"within 5%", []float64{1.04, 1.03, 1}, want{2, 0, 0, nil, true}},
		{"more pay", []float64{2, 1.01, 1}, want{2, 1, 0, []int{1}, false}},
		{"one does not fit", []float64{0, 1.3, 1}, want{2, 2, -1, nil, false}},
		{"nothing fits", []float64{0, 0}, want{-1, -1, -1, nil, false}},
	} {
		var answers []verdict.Answer
		for k, s := range c.steps {
			a := verdict.Answer{Devices: k + 1, Score: plan.Score{Value: s}}
			if s == 0 {
				a.Score.Overflow = 1
			}
			answers = append(answers, a)
		}
		got := verdict.Conclude(append([]verdict.Answer{{Machine: 7, Devices: 1, Score: plan.Score{Value: 0.1}}}, answers...), 0, e)
		for _, k := range []*int{&got.Best, &got.Fewest, &got.One} {
			*k = max(-1, *k-1)
		}
		for k := range got.Ties {
			got.Ties[k]--
		}
		if got.Best != c.best || got.Fewest != c.fewest || got.One != c.one || !slices.Equal(got.Ties, c.ties) || got.Enough != c.enough {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	// Outside of 5%, but inside of a large error of the model.
	answers := []verdict.Answer{{Devices: 1, Score: plan.Score{Value: 1.08}}, {Devices: 2, Score: plan.Score{Value: 1}}}
	if c := verdict.Conclude(answers, 0, verdict.ModelError{Share: 0.1}); !c.Enough || c.Fewest != 1 {
		t.Errorf("a tie: %+v, want that one is enough and two the fewest within 5%%", c)
	}
	one, two := &answers[0], &answers[1]
	if got := two.Efficiency(one); math.Abs(got-0.54) > 1e-12 {
		t.Errorf("efficiency %g, want 0.54", got)
	}
	if got := two.PerMillion(100, 3.6); math.Abs(got-10) > 1e-12 { // 10,000 s at 0.001 a second
		t.Errorf("a million samples cost %g, want 10", got)
	}
}

func TestPrices(t *testing.T) {
	m := load(t, "a100", 2, true)
	cpu := m.Devices[2].Model
	for _, c := range []struct {
		by   map[string]float64
		want []float64
	}{
		{nil, nil}, {map[string]float64{"": 2}, []float64{2, 2, 0}}, {map[string]float64{"a100": 3}, []float64{3, 3, 0}}, {map[string]float64{m.Devices[0].Model: 3}, []float64{3, 3, 0}}, {map[string]float64{cpu: 1, "": 2}, []float64{2, 2, 1}},
	} {
		got, err := verdict.Prices(m, c.by)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, error %v; want %v", c.by, got, err, c.want)
		}
	}
	if _, err := verdict.Prices(m, map[string]float64{"h100": 1}); err == nil || !strings.Contains(err.Error(), "no price of device gpu:0") {
		t.Errorf("error %v", err)
	}
	alone := m.Keep([]int{2})
	if got, err := verdict.Prices(alone, map[string]float64{"": 2}); err != nil || !slices.Equal(got, []float64{2}) {
		t.Errorf("a CPU alone costs %v, error %v", got, err)
	}
	x := verdict.Machine{Machine: m, Price: []float64{2, 2, 1}}
	if p, ok := x.Hour(3); !ok || p != 5 {
		t.Errorf("an hour of all costs %g", p)
	}
	x.Price = nil
	if _, ok := x.Hour(1); ok {
		t.Error("a price of nothing known")
	}
}

// TestInOrder: GPUs stand before CPUs, the better one first, equal ones as they were.
func TestInOrder(t *testing.T) {
	s := randomSource(1)
	m := load(t, "p100", 2, true)
	if got, err := verdict.InOrder(s, m); err != nil || got != m {
		t.Errorf("equal GPUs before a CPU were sorted, error %v", err)
	}
	g, err := workloads.Build("vit:layers=2,batch=8")
	if err != nil {
		t.Fatal(err)
	}
	mixed := m.Keep([]int{2, 0, 1})
	mixed.Devices[1].MemoryBandwidth /= 4
	mixed.Devices[1].Model = "slow"
	got, err := verdict.InOrder(problem.Source{Graph: g}, mixed)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range got.Devices {
		names = append(names, got.Devices[i].Name)
	}
	if want := "gpu:1 gpu:0 cpu:0"; strings.Join(names, " ") != want {
		t.Errorf("order %v, want %s", names, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

// TestPareto: nothing on the front is beaten, and everything off it is.
func TestPareto(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var a verdict.Answer
		for range 1 + rng.IntN(20) {
			a.Seen = append(a.Seen, verdict.Point{Devices: 1 + rng.IntN(4), Step: float64(rng.IntN(6)), Memory: units.Bytes(rng.IntN(6))})
		}
		front := verdict.Pareto([]verdict.Answer{a})
		covers := func(p, q verdict.Point) bool {
			return p.Devices <= q.Devices && p.Step <= q.Step && p.Memory <= q.Memory
		}
		for _, p := range a.Seen {
			if !slices.ContainsFunc(front, func(q verdict.Point) bool { return covers(q, p) }) {
				t.Fatalf("%+v is not covered by %+v", p, front)
			}
		}
		for i, p := range front {
			for j, q := range front {
				if i != j && covers(p, q) {
					t.Fatalf("%+v beats %+v on the front", p, q)
				}
			}
		}
	}
}

// TestErrorOf: the figures are those of the documented tables, or the machine's own.
func TestErrorOf(t *testing.T) {
	text, err := os.ReadFile("../../docs/hardware-models.md")
	if err != nil {
		t.Fatal(err)
	}
	s := randomSource(1)
	s.Seconds = nil
	for gpu, row := range map[string]string{
		"a100": "| A100-SXM4-80GB, Vidur phi-2 | f16 products | fitted to Llama-2-7B | 292 | %s |", "h100": "| H100-SXM-80GB, Vidur Llama-2-7B | f16 products | fitted to the XLA table | 1168 | %s |",
		"b200": "| B200-180GB, XLA table | bf16 products | three-fold, unseen shapes | 375 | %s |",
	} {
		e := verdict.ErrorOf(s, load(t, gpu, 1, false))
		if want := fmt.Sprintf(row, fmt.Sprintf("%.1f%%", 100*e.Share)); !strings.Contains(string(text), want) || e.Source == "" {
			t.Errorf("%s: an error of %g, docs/hardware-models.md lacks %q", gpu, e.Share, want)
		}
	}
	m := load(t, "p100", 1, false)
	if e := verdict.ErrorOf(s, m); !strings.HasPrefix(e.Source, "assumed") {
		t.Errorf("of a P100 nothing was measured: %+v", e)
	}
	m.Devices[0].Calibration = &hw.Calibration{Source: "here", Error: 0.031}
	if e := verdict.ErrorOf(s, m); e.Share != 0.031 || !strings.Contains(e.Source, "here") {
		t.Errorf("a calibrated machine's error is %+v", e)
	}
	s.Seconds = make([]units.Seconds, s.NumOps())
	if e := verdict.ErrorOf(s, m); e.Share != 0.049 {
		t.Errorf("with times of the file: %+v", e)
	}
}

// TestAtPeak: a product's FLOPs over the peaks of all devices together.
func TestAtPeak(t *testing.T) {
	b := graph.NewBuilder("one product")
	b.Op(graph.Op{Name: "p", Kind: "MatMul", DType: graph.BF16, FLOPs: 1e15, GEMM: graph.GEMM{Batch: 1, M: 1, N: 1, K: 1}, Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Bytes: 1})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, "a100", 2, false)
	answers := sweep(t, problem.Source{Graph: g}, verdict.Config{Counts: []int{2}, Budget: plan.Budget{Evaluations: 1}, Methods: []string{"single"}}, m)
	want := 1e15 / float64(2*m.Devices[0].Peak["bf16"])
	if got := float64(answers[0].AtPeak); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("FLOPs at peak take %g s, want %g", got, want)
	}
}
