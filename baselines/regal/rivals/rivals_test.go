package rivals_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func graph(_ context.Context, k int) (*sched.Problem, error) {
	c := synth.Default()
	c.MaxOps = 70
	return c.Generate(rand.New(rand.NewPCG(71, uint64(k)))), nil
}

func config(workers int) rivals.Config {
	fixed := propose.Fixed{Shape: brkga.Shape{Alpha: 1, Beta: 1}}
	return rivals.Config{
		Methods:     rivals.Methods(rivals.Options{REGAL: fixed, GAS: fixed}),
		Evaluations: 300, Seed: 4, Graphs: 2, Graph: graph, Workers: workers, Clock: func() float64 { return 0 },
	}
}

// Every method of the table runs for both objectives, keeps to the evaluations,
// stays above the bound, and gives the same whatever the number of workers.
func TestCompare(t *testing.T) {
	for _, o := range []sched.Objective{sched.RunTime, sched.PeakMemory} {
		c := config(1)
		c.Objective = o
		one, err := rivals.Compare(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		c = config(3)
		c.Objective = o
		three, err := rivals.Compare(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, three) {
			t.Errorf("%v: three workers find something else", o)
		}
		for _, g := range one {
			for m, r := range g.Runs {
				name := c.Methods[m].Name
				if r.Skipped {
					if o == sched.RunTime {
						t.Errorf("%s does not apply to the run time", name)
					}
					continue
				}
				if r.Cost < g.Bound || r.Evaluations > 300 {
					t.Errorf("%v, %s: %s costs %g with bound %g after %d evaluations", o, g.Name, name, r.Cost, g.Bound, r.Evaluations)
				}
			}
		}
	}
}

func TestErrorsEndIt(t *testing.T) {
	c := config(2)
	c.Graph = func(ctx context.Context, k int) (*sched.Problem, error) {
		if k == 1 {
			return nil, errors.New("no such graph")
		}
		return graph(ctx, k)
	}
	if _, err := rivals.Compare(context.Background(), c); err == nil || err.Error() != "no such graph" {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := rivals.Compare(ctx, config(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The aggregates of a table worked by hand.
func TestTable(t *testing.T) {
	graphs := []rivals.Graph{
		{Name: "a", Bound: 50, Runs: []rivals.Run{{Cost: 100}, {Cost: 80, Seconds: 1}, {Cost: 50, Seconds: 3}}},
		{Name: "b", Bound: 90, Runs: []rivals.Run{{Cost: 100}, {Cost: 110, Seconds: 3}, {Skipped: true}}},
		{Name: "c", Bound: 90, Runs: []rivals.Run{{Cost: 100}, {Cost: 2 * sched.Infeasible}, {Cost: 100, Seconds: 2}}},
	}
	rows := rivals.Table([]string{"base", "x", "y"}, graphs, 0)
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-12 }
	x, y := rows[1], rows[2]
	if !near(x.Improvement, (0.2-0.1)/2) || !near(x.Gap, (0.6+0.1)/2) || x.Infeasible != 1 || x.Graphs != 2 || x.Wins != 1 || x.Losses != 1 || x.Seconds != 2 || x.WorstSeconds != 3 {
		t.Errorf("x: %+v", x)
	}
	if !near(y.Improvement, 0.25) || y.AtBound != 1 || y.Ties != 1 || !near(y.WorstBoundGap, 1.0/9) || y.Graphs != 2 {
		t.Errorf("y: %+v", y)
	}
	if b := rows[0]; b.Improvement != 0 || b.Ties != 3 || !near(b.Gap, 1.0/3) {
		t.Errorf("base: %+v", b)
	}
}

func Example() {
	c := config(1)
	graphs, err := rivals.Compare(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		return
	}
	var names []string
	base := 0
	for m, x := range c.Methods {
		names = append(names, x.Name)
		if x.Name == rivals.Base {
			base = m
		}
	}
	rows := rivals.Table(names, graphs, base)
	last := rows[len(rows)-1]
	fmt.Println(last.Method, last.Graphs, last.Improvement > 0.2, last.BoundGap < 0.01)
	// Output: phases 2 true true
}
