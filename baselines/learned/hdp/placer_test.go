package hdp_test

import (
	"context"
	"fmt"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/learned/hdp"
	"placer/baselines/learned/reinforce"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// ladder is a graph whose ops each read the two before, with transfers that take
// far longer than the ops: the more random a placement, the worse.
func ladder(n int) conformance.Case {
	c := conformance.Cases()[3]
	b := graph.NewBuilder("ladder")
	var last []graph.TensorID
	c.Costs = conformance.Costs{Uniform: true}
	for i := range n {
		id := b.Op(graph.Op{Name: fmt.Sprintf("op%d", i), Kind: "MatMul", Bytes: 1000, Forward: graph.None}, last, graph.Tensor{Bytes: 300_000})
		last = append(last, b.Output(id, 0))
		last = last[max(0, len(last)-2):]
		c.Costs.Micros = append(c.Costs.Micros, 100)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	c.Graph = g
	return c
}

func train(t *testing.T, c hdp.Config, evaluations int) (*plan.Outcome, []reinforce.Round) {
	t.Helper()
	x := ladder(30)
	p, err := x.Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Budget.Evaluations = evaluations
	var rounds []reinforce.Round
	o, err := hdp.Placer{Config: c, Observe: func(r reinforce.Round) { rounds = append(rounds, r) }}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return o, rounds
}

// TestTrains: the mean cost of a round falls clearly, from a random start and from
// an ordered one, with an aligned decoder or without.
func TestTrains(t *testing.T) {
	for _, sharpness := range []float64{0, 4} {
		for _, aligned := range []bool{false, true} {
			c := hdp.Default()
			c.Level, c.Sharpness, c.Aligned, c.Groups, c.LearningRate = unit.Op, sharpness, aligned, 10, 5e-3
			_, rounds := train(t, c, 1600)
			first, last := 0.0, 0.0
			for i := range 5 {
				first += rounds[i].Mean / 5
				last += rounds[len(rounds)-1-i].Mean / 5
			}
			if last > 0.9*first {
				t.Errorf("sharpness %g, aligned %v: the cost goes from %.3f to %.3f", sharpness, aligned, first, last)
			}
		}
	}
}

func TestNumberOfGroups(t *testing.T) {
	c := hdp.Default()
	c.Level, c.Groups = unit.Op, 1000 // more than there are ops
	if o, _ := train(t, c, 20); len(o.Device) != 30 {
		t.Errorf("%d ops placed, want 30", len(o.Device))
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, change := range map[string]func(*hdp.Config){
		"samples":   func(c *hdp.Config) { c.Samples = 0 },
		"groups":    func(c *hdp.Config) { c.Groups = -1 },
		"width":     func(c *hdp.Config) { c.Width = 7 },
		"rate":      func(c *hdp.Config) { c.LearningRate = 0 },
		"sharpness": func(c *hdp.Config) { c.Sharpness = -1 },
		"level":     func(c *hdp.Config) { c.Level = unit.NumLevels },
		"signal":    func(c *hdp.Config) { c.Signal.Failing = 0 },
	} {
		c := hdp.Default()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := hdp.Default().Validate(); err != nil {
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
	o, err := hdp.Placer{Config: hdp.Default()}.Place(context.Background(), p)
	if err != nil {
		panic(err)
	}
	fmt.Println("shorter than on one device:", o.Score.Better(single))
	// Output:
	// shorter than on one device: true
}
