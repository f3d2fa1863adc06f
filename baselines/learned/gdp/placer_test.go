package gdp_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/learned/gdp"
	"placer/graph/unit"
	"placer/plan"
	"placer/ppo"
)

func problem(t testing.TB, k, evaluations int) *plan.Problem {
	t.Helper()
	p, err := conformance.Cases()[k].Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Budget.Evaluations = evaluations
	return p
}

func small(c gdp.Config) gdp.Config {
	c.Level, c.Training.Samples, c.Training.Epochs = unit.Op, 8, 1
	return c
}

// TestOneIsGDP: the average of all earlier trials as baseline, one task, no
// refinement, modulation in dense layers.
func TestOneIsGDP(t *testing.T) {
	for _, c := range []gdp.Config{gdp.One(), gdp.Batch()} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		if c.Training.Baseline != ppo.AverageReward || c.Training.Iterations != 1 || c.Training.ClipEps != 0.2 || c.Steps != 1000 {
			t.Errorf("%+v is not GDP's", c)
		}
	}
	if gdp.Batch().Features.Identity != 0 {
		t.Error("GDP-batch has columns that mean nothing to other graphs")
	}
}

// TestBatchTrainsAllGraphs: the graphs of a batch take turns, the placement's budget is spent,
// and the same seed gives the same placement.
func TestBatchTrainsAllGraphs(t *testing.T) {
	c := small(gdp.Batch())
	c.Graphs, c.Steps = 2, 3
	place := func() (o *plan.Outcome, turns []int) {
		p := problem(t, 2, 64)
		b := gdp.PlacerBatch{Config: c, Companions: []*plan.Problem{problem(t, 3, 0), problem(t, 8, 0)}, Observe: func(r gdp.Round) { turns = append(turns, r.Graph) }}
		o, err := b.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if o.Evaluations != p.Budget.Evaluations {
			t.Errorf("%d evaluations, want %d", o.Evaluations, p.Budget.Evaluations)
		}
		if s := p.Evaluator.Evaluate(plan.Decision{Device: o.Device, Priority: p.Priority}); s != o.Score {
			t.Errorf("score %v, its placement's is %v", o.Score, s)
		}
		return o, turns
	}
	first, turns := place()
	if again, _ := place(); !slices.Equal(first.Device, again.Device) {
		t.Error("the same seed gave another placement")
	}
	// Two graphs take turns for three steps before others are drawn.
	seen := map[int]bool{}
	for _, g := range turns[:6] {
		seen[g] = true
	}
	if len(seen) != 2 {
		t.Errorf("turns %v: the first batch has %d graphs, want 2", turns, len(seen))
	}
}

// TestBatchPlacer: companions are noted and their evaluations do not count.
func TestBatchPlacer(t *testing.T) {
	p := problem(t, 3, 48)
	o, err := gdp.PlacerBatch{Config: small(gdp.Batch()), Companions: []*plan.Problem{problem(t, 8, 0)}}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations != 48 || len(o.Notes) != 1 || len(o.Device) != p.Graph.NumOps() {
		t.Errorf("%d evaluations, notes %q, %d ops", o.Evaluations, o.Notes, len(o.Device))
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, change := range map[string]func(*gdp.Config){
		"level":       func(c *gdp.Config) { c.Level = unit.NumLevels },
		"rate":        func(c *gdp.Config) { c.LearningRate = 0 },
		"graphs":      func(c *gdp.Config) { c.Graphs = 0 },
		"steps":       func(c *gdp.Config) { c.Steps = 0 },
		"minibatches": func(c *gdp.Config) { c.Training.Minibatches = 2 },
	} {
		c := gdp.One()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func Example() {
	p, err := conformance.Cases()[8].Problem() // a training step on two devices
	if err != nil {
		panic(err)
	}
	p.Budget.Evaluations = 128
	single := p.Evaluator.Evaluate(plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority})
	o, err := gdp.PlacerOne{Config: gdp.One()}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Println("shorter than on one device:", o.Score.Better(single))
	// Output:
	// shorter than on one device: true
}
