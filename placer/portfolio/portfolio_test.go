package portfolio

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/budget"
	"placer/baselines/conformance"
	"placer/graph/unit"
	"placer/placer/problem"
	"placer/plan"
)

// walk is a method for tests: it moves a few ops of the best placement that it knows.
type walk struct {
	name  string
	start []uint8
}

func (w walk) Name() string  { return w.name }
func (walk) Kind() plan.Kind { return plan.Search }

func (w walk) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	t := budget.New(ctx, p, w.name)
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	best := make([]uint8, p.Graph.NumOps())
	copy(best, w.start)
	score := t.Try(best)
	for !t.Done() {
		next := slices.Clone(best)
		next[rng.IntN(len(next))] = uint8(rng.IntN(p.Machine.NumDevices()))
		if s := t.Try(next); s.Better(score) {
			best, score = next, s
		}
	}
	return t.Outcome()
}

func testArms() []Arm {
	return []Arm{
		{Name: "anew", New: func(plan.Decision, int) (plan.Placer, error) { return walk{name: "anew"}, nil }},
		{Name: "absent", New: func(plan.Decision, int) (plan.Placer, error) { return nil, errors.New("not installed") }},
		{Name: "on", FromBest: true, New: func(s plan.Decision, _ int) (plan.Placer, error) { return walk{"on", s.Device}, nil }},
		{Name: "idle", FromBest: true, New: func(s plan.Decision, _ int) (plan.Placer, error) { return still{s}, nil }},
	}
}

// still gives its start.
type still struct{ plan.Decision }

func (still) Name() string    { return "still" }
func (still) Kind() plan.Kind { return plan.Search }
func (s still) Place(_ context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return &plan.Outcome{Decision: s.Decision, Score: p.Evaluate(s.Device), Evaluations: 1}, nil
}

func testProblem(t *testing.T, evaluations int) *plan.Problem {
	t.Helper()
	p, err := conformance.Cases()[3].Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Budget = plan.Budget{Evaluations: evaluations}
	return p
}

func place(t *testing.T, a Placer, evaluations int) *plan.Outcome {
	t.Helper()
	o, err := a.Place(t.Context(), testProblem(t, evaluations))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Neither the outcome depends on how many walkers run at once, nor the bests on the way.
func TestWorkersChangeNothing(t *testing.T) {
	type told struct {
		evaluations int
		best        plan.Score
	}
	for _, n := range []int{1, 50, 777} {
		reported := func(workers int) (*plan.Outcome, []told) {
			p := testProblem(t, n)
			var bests []told
			p.Report = func(x plan.Progress) {
				if x.Device != nil {
					bests = append(bests, told{x.Evaluations, x.Best})
				}
			}
			o, err := Placer{Arms: testArms(), Walkers: 3, Workers: workers}.Place(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return o, bests
		}
		one, bests := reported(1)
		for workers := 2; workers <= 4; workers++ {
			o, some := reported(workers)
			if !slices.Equal(o.Device, one.Device) || o.Score != one.Score || o.Evaluations != one.Evaluations || !slices.Equal(o.Notes, one.Notes) {
				t.Errorf("%d evaluations on %d workers: %v %q, on one %v %q", n, workers, o.Score, o.Notes, one.Score, one.Notes)
			}
			if !slices.Equal(some, bests) {
				t.Errorf("%d evaluations on %d workers: bests %v, on one %v", n, workers, some, bests)
			}
		}
	}
}

// A larger budget in evaluations makes those of a smaller one and goes on.
func TestMoreIsNeverWorse(t *testing.T) {
	var before plan.Score
	better := 0
	for n := 1; n < 600; n++ {
		o := place(t, Placer{Arms: testArms(), Workers: 1}, n)
		if n > 1 && before.Better(o.Score) {
			t.Fatalf("%d evaluations end at %v, %d at %v", n-1, before, n, o.Score)
		}
		if o.Score.Better(before) {
			better++
		}
		before = o.Score
	}
	if better < 10 {
		t.Errorf("600 budgets gave %d better plans", better)
	}
}

func TestNeverBehindTheStart(t *testing.T) {
	good := place(t, Placer{Arms: testArms()}, 3000)
	for _, n := range []int{1, 2, 30} {
		if o := place(t, Placer{Arms: testArms(), Start: good.Decision}, n); good.Score.Better(o.Score) {
			t.Errorf("%d evaluations from %v end at %v", n, good.Score, o.Score)
		}
	}
}

// Interrupted, it has the best of what it reported.
func TestInterruptKeepsTheBest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := testProblem(t, 1<<30)
	var shown plan.Score
	told := 0
	p.Report = func(x plan.Progress) {
		if x.Device != nil {
			shown = x.Best
		}
		if told++; told == 200 {
			stop()
		}
	}
	o, err := Placer{Arms: testArms(), Workers: 1}.Place(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if shown.Better(o.Score) || told < 200 {
		t.Errorf("ended at %v after %v was reported", o.Score, shown)
	}
}

// An arm that brings nothing waits a round longer each time, and what brings much is
// pulled again at once.
func TestArmStats(t *testing.T) {
	var l armStats
	for k, want := range []int{2, 4, 6} {
		l.pulled(k, 0)
		if l.due != want {
			t.Errorf("after %d pulls for nothing it is due in round %d, want %d", k+1, l.due, want)
		}
	}
	l.pulled(3, 0.5)
	if l.due != 4 || l.credit != 0.25 {
		t.Errorf("after a pull that brought something it is due in round %d with credit %g", l.due, l.credit)
	}
	arms := []Arm{{FromBest: true}, {FromBest: true}, {FromBest: true}, {}, {}}
	r := &run{Placer: Placer{Arms: arms, Walkers: 2}, own: make([]ownPlan, 2), stats: []armStats{{credit: 0.1}, {credit: 0.2}, {credit: 0.3, due: 9}, {due: 3}, {due: 2}}}
	if got := r.choose(3); !slices.Equal(got, []int{1, 4}) {
		t.Errorf("walkers pull %v, want the arm of the largest credit among those that do not rest, and the one from nothing that has waited longest", got)
	}
	r.own[1].Device = []uint8{0}
	if got := r.choose(3); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("walkers pull %v, want both to pull the arm of the largest credit, the second for its own plan", got)
	}
}

// refuses has no placement.
type refuses struct{}

func (refuses) Name() string    { return "refuses" }
func (refuses) Kind() plan.Kind { return plan.Search }
func (refuses) Place(context.Context, *plan.Problem) (*plan.Outcome, error) {
	return nil, errors.New("not here")
}

// A walker whose arm declines, or ends long before its slice does, pulls another one in the
// same round.
func TestTheRestOfASlice(t *testing.T) {
	anew := func(name string, p plan.Placer) Arm {
		return Arm{Name: name, New: func(plan.Decision, int) (plan.Placer, error) { return p, nil }}
	}
	declines := place(t, Placer{Arms: []Arm{anew("refuses", refuses{}), anew("anew", walk{name: "anew"})}, Walkers: 1, Workers: 1}, 30)
	if declines.Evaluations < 30 {
		t.Errorf("%d evaluations of 30 beside an arm that declines", declines.Evaluations)
	}
	p := testProblem(t, 0)
	now := 0.0
	p.Clock = func() float64 { now += 0.001; return now }
	p.Budget = plan.Budget{Seconds: 2}
	on := Arm{Name: "on", FromBest: true, New: func(s plan.Decision, _ int) (plan.Placer, error) { return walk{"on", s.Device}, nil }}
	quick := Arm{Name: "idle", FromBest: true, New: func(s plan.Decision, _ int) (plan.Placer, error) { return still{s}, nil }}
	o, err := Placer{Arms: []Arm{anew("anew", walk{name: "anew"}), quick, on}, Walkers: 1, Workers: 1}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if now < 2 || o.Evaluations < 500 {
		t.Errorf("%d evaluations in %.3f s, of one each two milliseconds: the rest of slices was lost", o.Evaluations, now)
	}
}

// Where there is time for a single round, who uses the best plan begins with it.
func TestASingleRound(t *testing.T) {
	arms := []Arm{{Name: "anew"}, {Name: "on", FromBest: true}}
	r := &run{Placer: Placer{Arms: arms, Walkers: 2}, own: make([]ownPlan, 2), stats: make([]armStats, 2)}
	if got := r.choose(0); !slices.Equal(got, []int{0, 0}) {
		t.Errorf("walkers pull %v, want both to begin anew", got)
	}
	r.once = true
	if got := r.choose(0); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("walkers pull %v, want the first to begin with the best plan", got)
	}
}

func TestNoArmHasAPlacement(t *testing.T) {
	o, err := Placer{Arms: testArms()[1:2], Workers: 1}.Place(t.Context(), testProblem(t, 20))
	if err != nil || o.Device == nil { // the start stands
		t.Errorf("%v, %v", o, err)
	}
}

// counts notes the units that it is given.
type counts struct {
	still
	cells *int
}

func (c counts) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	*c.cells = p.Units.Levels[unit.Cell].NumUnits()
	return c.still.Place(ctx, p)
}

// TestPartialGradientsApart: arms decide partial gradients whatever the tasks, and the
// problem keeps its units.
func TestPartialGradientsApart(t *testing.T) {
	p, err := problem.Workload("trfxl:layers=1,batch=8,sequence=64,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", "p100", 2, problem.Options{Tasks: plan.AllTasks})
	if err != nil {
		t.Fatal(err)
	}
	plain, got := p.Units.Levels[unit.Cell].NumUnits(), 0
	p.Budget = plan.Budget{Evaluations: 2}
	device := make([]uint8, p.Graph.NumOps())
	arm := Arm{Name: "counts", New: func(plan.Decision, int) (plan.Placer, error) {
		return counts{still{plan.Decision{Device: device}}, &got}, nil
	}}
	if _, err := (Placer{Arms: []Arm{arm}, Walkers: 1}).Place(t.Context(), &p.Problem); err != nil {
		t.Fatal(err)
	}
	if got <= plain || p.Units.Levels[unit.Cell].NumUnits() != plain {
		t.Errorf("the arm has %d cells, the problem %d, and %d before", got, p.Units.Levels[unit.Cell].NumUnits(), plain)
	}
}

// TestNotes: what brought nothing is not said to have shortened the plan.
func TestNotes(t *testing.T) {
	arms := []Arm{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, c := range []struct {
		stats []armStats
		want  string
	}{
		{[]armStats{{pulls: 1, evaluations: 5, brought: 0.1}, {pulls: 2, evaluations: 8}, {}}, "shortened the best plan: a by 9.52% (1 run, 5 evaluations); did not: b (2 runs, 8 evaluations)"},
		{[]armStats{{}, {pulls: 2, evaluations: 8, brought: 1e-7}, {}}, "did not shorten the best plan: b (2 runs, 8 evaluations)"},
		{[]armStats{{}, {}, {pulls: 1, evaluations: 2, brought: 1}}, "shortened the best plan: c by 63.21% (1 run, 2 evaluations)"},
		{make([]armStats, 3), ""},
	} {
		r := &run{stats: c.stats}
		r.Arms = arms
		got := ""
		for _, n := range r.notes() {
			got += n
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
