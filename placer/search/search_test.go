package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"placer/baselines/conformance"
	"placer/placer/problem"
	"placer/plan"
)

// counting is a method for tests: it evaluates the placements that number its
// evaluations in base D, until its budget ends.
type counting struct {
	name  string
	kind  plan.Kind
	start []uint8
	fail  error
	at    int    // evaluation at which then is called
	then  func() // may be nil
	seen  *plan.Problem
}

func (c *counting) Name() string    { return c.name }
func (c *counting) Kind() plan.Kind { return c.kind }

func (c *counting) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	c.seen = p
	if c.fail != nil {
		return nil, c.fail
	}
	started := p.Clock()
	out := &plan.Outcome{}
	try := func(device []uint8) {
		s := p.Evaluator.Evaluate(plan.Decision{Device: device, Priority: p.Priority})
		out.Evaluations++
		r := plan.Progress{Method: c.name, Evaluations: out.Evaluations}
		if out.Device == nil || s.Better(out.Score) {
			out.Device, out.Score = slices.Clone(device), s
			r.Device = out.Device
		}
		r.Best = out.Score
		p.Report(r)
	}
	if c.start != nil {
		try(c.start)
	}
	device := make([]uint8, p.Graph.NumOps())
	for k := p.Seed % 1000; ; k++ {
		rest := k
		for i := range device {
			device[i] = uint8(rest % uint64(p.Machine.NumDevices()))
			rest = rest/uint64(p.Machine.NumDevices()) + k*uint64(i)%7
		}
		try(device)
		if out.Evaluations == c.at && c.then != nil {
			c.then()
		}
		b := p.Budget
		if c.kind == plan.Baseline || ctx.Err() != nil || b.Evaluations > 0 && out.Evaluations >= b.Evaluations || b.Seconds > 0 && p.Clock()-started >= b.Seconds {
			return out, nil
		}
	}
}

// clock advances by a millisecond whenever it is read.
type clock struct {
	mu  sync.Mutex
	now float64
}

func (c *clock) read() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += 1e-3
	return c.now
}

func testProblem(t *testing.T) *problem.Problem {
	t.Helper()
	c := conformance.Cases()[4] // groups
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	return &problem.Problem{Problem: *p, Bound: 1e-6}
}

// together makes counting's placements respect co-location groups by keeping the
// ops of a group on the first device: the cases' graphs have few.
type together struct{ *counting }

func (w together) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	q := *p
	q.Evaluator, q.Moves = grouped{p.Evaluator, p}, nil
	out, err := w.counting.Place(ctx, &q)
	if out != nil {
		out.Device = grouped{nil, p}.fix(out.Device)
	}
	return out, err
}

type grouped struct {
	plan.Evaluator
	p *plan.Problem
}

func (g grouped) fix(device []uint8) []uint8 {
	device = slices.Clone(device)
	for i := range device {
		if o := g.p.Graph.Op(opID(i)); o.Group > 0 {
			device[i] = 0
		}
	}
	return device
}

func (g grouped) Evaluate(d plan.Decision) plan.Score {
	return g.Evaluator.Evaluate(plan.Decision{Device: g.fix(d.Device), Priority: d.Priority, Fusion: d.Fusion})
}

func testMethods(change func(name string, c *counting)) []Method {
	var ms []Method
	for _, m := range []Method{
		{Name: "human", Kind: plan.Baseline},
		{Name: "absent", Kind: plan.Baseline},
		{Name: "a", Kind: plan.Search, Stage: StageSearch, Weight: 1},
		{Name: "b", Kind: plan.Search, Stage: StageSearch, Weight: 3},
		{Name: "policy", Kind: plan.Policy, Stage: StageSearch, Weight: 4},
		{Name: "last", Kind: plan.Search, Stage: StageFinish, Weight: 2},
	} {
		m.New = func(s Start) (plan.Placer, error) {
			c := &counting{name: m.Name, kind: m.Kind, start: s.Device}
			if m.Name == "absent" {
				c.fail = errors.New("its program is not installed")
			}
			if change != nil {
				change(m.Name, c)
			}
			return together{c}, nil
		}
		ms = append(ms, m)
	}
	return ms
}

func testConfig(b plan.Budget, workers int) Config {
	c := Default()
	c.Budget, c.Seed, c.Workers = b, 7, workers
	return c
}

func search(t *testing.T, ctx context.Context, methods []Method, c Config, o Observer, memory *Memory) *Result {
	t.Helper()
	k := &clock{}
	r, err := Search(ctx, testProblem(t), methods, c, Host{Clock: k.read, CPU: k.read, Observe: o, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEvaluationsAreDividedByWeight(t *testing.T) {
	r := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Evaluations: 1000}, 2), nil, nil)
	for name, want := range map[string]int{"human": 1, "a": 100, "b": 300, "policy": 400, "last": 200} {
		if got := r.Row(name).Evaluations; got != want {
			t.Errorf("%s made %d evaluations, want %d", name, got, want)
		}
	}
	if len(r.Skipped) != 1 || r.Skipped[0].Method != "absent" || !strings.Contains(r.Skipped[0].Reason, "not installed") {
		t.Errorf("skipped %+v, want the method that failed, with its reason", r.Skipped)
	}
	if r.Evaluations != 1001 {
		t.Errorf("%d evaluations in all, want 1001", r.Evaluations)
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	var first *Result
	for workers := 1; workers <= 4; workers++ {
		r := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Evaluations: 300}, workers), nil, nil)
		if first == nil {
			first = r
			continue
		}
		for i := range r.Rows {
			if !slices.Equal(r.Rows[i].Device, first.Rows[i].Device) || r.Rows[i].Score != first.Rows[i].Score {
				t.Errorf("%s found something else with %d workers than with 1", r.Rows[i].Method, workers)
			}
		}
		if r.Best != first.Best {
			t.Errorf("best is row %d with %d workers, %d with 1", r.Best, workers, first.Best)
		}
	}
}

func TestBestIsNoWorseThanAnyRow(t *testing.T) {
	r := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Evaluations: 50}, 2), nil, nil)
	for _, row := range r.Rows {
		if row.Score.Better(r.Rows[r.Best].Score) {
			t.Errorf("%s with %v is better than the best, %v", row.Method, row.Score, r.Rows[r.Best].Score)
		}
	}
	// What starts from the best of the others cannot end worse, but than the best, which
	// has been tidied.
	for i, row := range r.Rows {
		if i != r.Best && row.Score.Better(r.Row("last").Score) {
			t.Errorf("last started from the best but ended behind %s", row.Method)
		}
	}
}

// TestSearchesStartFromNothing: the policy's row must owe nothing to annealing.
func TestSearchesStartFromNothing(t *testing.T) {
	starts := map[string][]uint8{}
	var mu sync.Mutex
	search(t, context.Background(), testMethods(func(name string, c *counting) {
		mu.Lock()
		defer mu.Unlock()
		starts[name] = c.start
	}), testConfig(plan.Budget{Evaluations: 50}, 1), nil, nil)
	for name, start := range starts {
		if (start != nil) != (name == "last") {
			t.Errorf("%s starts from %v", name, start)
		}
	}
}

func TestSecondsAreDividedAndKept(t *testing.T) {
	shares := map[string]float64{}
	var mu sync.Mutex
	r := search(t, context.Background(), testMethods(nil), testConfig(plan.Budget{Seconds: 4}, 1), func(e Event) error {
		mu.Lock()
		defer mu.Unlock()
		if e.What == Started {
			shares[e.Method] = e.Budget.Seconds
		}
		return nil
	}, nil)
	// The weights are 1, 3, 4 and 2 of 10.
	for name, want := range map[string]float64{"a": 0.4, "b": 1.2, "policy": 1.6, "last": 0.8} {
		if got := shares[name]; got < want*0.95 || got > want*1.05 {
			t.Errorf("%s's share is %g s, want about %g", name, got, want)
		}
	}
	if r.Seconds < 4 || r.Seconds > 4.2 {
		t.Errorf("the search took %g s of 4", r.Seconds)
	}
	if r.FirstFeasible < 0 || r.FirstFeasible > 0.1 {
		t.Errorf("first feasible plan after %g s", r.FirstFeasible)
	}
}

func TestInterruptKeepsTheBest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cut := map[string]bool{}
	r := search(t, ctx, testMethods(func(name string, c *counting) {
		if name == "b" {
			c.at, c.then = 10, cancel
		}
	}), testConfig(plan.Budget{Evaluations: 1 << 20}, 1), func(e Event) error {
		if e.What == Ended || e.What == Skipped {
			cut[e.Method] = e.Cut
		}
		return nil
	}, nil)
	if !r.Interrupted || r.Row("human") == nil || r.Row("b") == nil || r.Row("b").Evaluations != 10 {
		t.Errorf("interrupted %v, rows %+v", r.Interrupted, r.Rows)
	}
	for name, want := range map[string]bool{"human": false, "absent": false, "b": true, "policy": true, "last": true} {
		if got, ok := cut[name]; !ok || got != want {
			t.Errorf("%s was cut off: %v, want %v", name, got, want)
		}
	}
}

func TestNoPlacement(t *testing.T) {
	ms := testMethods(nil)[1:2]
	k := &clock{}
	_, err := Search(context.Background(), testProblem(t), ms, testConfig(plan.Budget{Evaluations: 5}, 1), Host{Clock: k.read, CPU: k.read})
	if !errors.Is(err, ErrNoPlacement) {
		t.Errorf("error %v, want ErrNoPlacement", err)
	}
}

func TestObserverErrorEndsTheSearch(t *testing.T) {
	full := errors.New("disk full")
	k := &clock{}
	n := 0
	_, err := Search(context.Background(), testProblem(t), testMethods(nil), testConfig(plan.Budget{Evaluations: 1 << 20}, 2), Host{Clock: k.read, CPU: k.read, Observe: func(Event) error {
		if n++; n == 20 {
			return full
		}
		return nil
	}})
	if !errors.Is(err, full) {
		t.Errorf("error %v, want that of the observer", err)
	}
}

func TestInvalidPlacementIsAnError(t *testing.T) {
	ms := []Method{{Name: "wild", Kind: plan.Baseline, New: func(Start) (plan.Placer, error) {
		return &counting{name: "wild", kind: plan.Baseline}, nil // splits groups
	}}}
	k := &clock{}
	c := testConfig(plan.Budget{Evaluations: 5}, 1)
	c.Seed = 3
	_, err := Search(context.Background(), testProblem(t), ms, c, Host{Clock: k.read, CPU: k.read})
	if err == nil || !strings.Contains(err.Error(), "wild broke its contract") {
		t.Errorf("error %v, want one that names the method", err)
	}
}

func TestSearchConfigValidate(t *testing.T) {
	for _, c := range []Config{{}, {Budget: plan.Budget{Seconds: -1}, Workers: 1}, {Budget: plan.Budget{Seconds: 1}}, {Budget: plan.Budget{Evaluations: 1}, Workers: 1 << 20}} {
		if c.Validate() == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}
