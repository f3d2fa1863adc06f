package rl2017

import (
	"context"
	"fmt"
	"math"
	"placer/plan"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/learned/reinforce"
	"placer/graph"
)

// ladders is side-by-side chains of ops that all read the heads of the others,
// with transfers that take far longer than the ops: the more random a placement,
// the worse. Every op has several readers, so that groups stay small.
func ladders(layers, width int) conformance.Case {
	c := conformance.Cases()[3]
	b := graph.NewBuilder("ladders")
	var last []graph.TensorID
	c.Costs = conformance.Costs{Uniform: true}
	for l := range layers {
		var heads []graph.TensorID
		for w := range width {
			id := b.Op(graph.Op{Name: fmt.Sprintf("op%d_%d", l, w), Kind: "MatMul", Bytes: 1000, Forward: graph.None}, last, graph.Tensor{Bytes: 300_000})
			heads = append(heads, b.Output(id, 0))
			c.Costs.Micros = append(c.Costs.Micros, 100)
		}
		last = heads
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	c.Graph = g
	return c
}

func train(t *testing.T, c Config, evaluations int) []reinforce.Round {
	t.Helper()
	x := ladders(10, 3)
	p, err := x.Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Budget.Evaluations = evaluations
	var rounds []reinforce.Round
	if _, err := (Placer{Config: c, Observe: func(r reinforce.Round) { rounds = append(rounds, r) }}).Place(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	return rounds
}

// TestTrains: the mean cost of a round falls clearly, with one controller, with an
// aligned decoder and with the paper's, and with several.
func TestTrains(t *testing.T) {
	for _, x := range []struct {
		controllers int
		aligned     bool
	}{{1, false}, {1, true}, {4, true}} {
		c := Default()
		c.Controllers, c.Aligned = x.controllers, x.aligned
		rounds := train(t, c, 1600)
		const mean = 20
		first, last := 0.0, 0.0
		for i := range mean {
			first += rounds[i].Mean / mean
			last += rounds[len(rounds)-1-i].Mean / mean
		}
		if last > 0.9*first {
			t.Errorf("%+v: the cost goes from %.3f to %.3f", x, first, last)
		}
	}
}

// TestBaselineStartsAtTheFailingSignal: section 3.1.
func TestBaselineStartsAtTheFailingSignal(t *testing.T) {
	c := Default()
	c.Controllers = 1
	rounds := train(t, c, 100)
	if want := 0.9*c.Signal.Failing + 0.1*rounds[0].Mean; math.Abs(rounds[0].Baseline-want) > 1e-9 {
		t.Errorf("baseline after the first round is %g, want %g", rounds[0].Baseline, want)
	}
}

// TestAsynchronousUpdates: with several controllers some gradients belong to
// parameters that others have changed meanwhile, and the interleaving, which
// follows the simulated clock, is the same in every run; another seed gives
// another one.
func TestAsynchronousUpdates(t *testing.T) {
	order := func(seed uint64) (order []int, stale int) {
		p, err := conformance.Cases()[3].Problem()
		if err != nil {
			t.Fatal(err)
		}
		p.Seed, p.Budget.Evaluations = seed, 400
		trials, err := reinforce.NewTrials(context.Background(), p, "rl-2017")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Placer{Config: Default()}.server(t.Context(), p, trials)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range s.controllers {
			if _, err := c.begin(); err != nil {
				t.Fatal(err)
			}
		}
		for range 40 {
			k := s.next()
			order = append(order, k)
			c := s.controllers[k]
			if !slices.Equal(c.params.All()[0].Value, s.params.All()[0].Value) {
				stale++
			}
			if err := s.update(c); err != nil {
				t.Fatal(err)
			}
			if _, err := c.begin(); err != nil {
				t.Fatal(err)
			}
		}
		return order, stale
	}
	first, stale := order(1)
	again, _ := order(1)
	other, _ := order(2)
	if !slices.Equal(first, again) {
		t.Errorf("turns %v, then %v", first, again)
	}
	if slices.Equal(first, other) {
		t.Errorf("turns do not depend on what was measured: %v", first)
	}
	if stale == 0 {
		t.Error("no gradient was late")
	}
	for k := range Default().Controllers {
		if !slices.Contains(first, k) {
			t.Errorf("controller %d had no turn in %v", k, first)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"controllers": func(c *Config) { c.Controllers = 0 },
		"samples":     func(c *Config) { c.Samples = 0 },
		"groups":      func(c *Config) { c.Groups = 0 },
		"width":       func(c *Config) { c.Width = 7 },
		"rate":        func(c *Config) { c.LearningRate = 0 },
		"signal":      func(c *Config) { c.Signal.Decay = 1 },
	} {
		c := Default()
		change(&c)
		if c.validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := Default().validate(); err != nil {
		t.Error(err)
	}
}

func Example() {
	p, err := conformance.Cases()[3].Problem() // 40 ops on 4 devices
	if err != nil {
		panic(err)
	}
	p.Budget.Evaluations = 800
	single := p.Evaluator.Evaluate(plan.Decision{Device: make([]uint8, 40), Priority: p.Priority})
	o, err := Placer{Config: Default()}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Println("shorter than on one device:", o.Score.Better(single))
	// Output:
	// shorter than on one device: true
}
