package fusion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/sim"
)

// TestAttribute: what kernels cost a class is, over the kernels that hold one of
// its ops, what they take less what their ops take alone, by the weight of their
// device.
func TestAttribute(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
	l, x := newLearner(t, p)
	l.weight = []float64{0.25, 2}
	level := randomLevels(rand.New(rand.NewPCG(4, 5)), x)
	best := decided(p, x, level)
	cost := make([]float64, len(x.ops))
	newValues(l, x, explore).attribute(l.price(0, x, level), cost)
	result, err := p.Evaluator.(*sim.Simulator).Run(&plan.Plan{Decision: *best}, sim.Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	own := p.Evaluator.OpSeconds(0)
	want := make([]float64, len(x.ops))
	for _, run := range result.Trace.Ops {
		cost, classes := float64(run.End-run.Start)-own[run.Op], map[int32]bool{x.of[run.Op]: true}
		for _, i := range run.Fused {
			cost -= own[i]
			classes[x.of[i]] = true
		}
		for c := range classes {
			if c >= 0 {
				want[c] += cost * l.weight[run.Device]
			}
		}
	}
	saves := false
	for c, s := range cost {
		saves = saves || s < 0
		if math.Abs(s-want[c]) > 1e-9 {
			t.Fatalf("kernels cost class %d %g s, want %g", c, s, want[c])
		}
	}
	if !saves {
		t.Error("no kernel saves anything: the case tests nothing")
	}
}

// TestValues: levels that cost a class less come to be likelier, and adjusting keeps
// them probabilities: those of values at first, then nearly those of imitation.
func TestValues(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	v := newValues(&learner{samples: 16}, &classes{ops: make([][]int32, 2)}, explore)
	for range 60 {
		actions, scores := make([][]int32, 16), make([]plan.Score, 16)
		for j := range actions {
			actions[j] = []int32{r.Int32N(levels), r.Int32N(levels)}
			v.cost[j][0], v.cost[j][1] = 1e-3*float64(actions[j][0]), 1e-3*float64(levels-actions[j][1])
			scores[j].Value = 0.1 + 1e-3*r.Float64() // the step says nothing
		}
		v.add(actions, scores, 1e-3)
	}
	if x, y := v.byValue[0], v.byValue[1]; !(x[0] > 1.5*x[1] && x[1] > 1.5*x[2] && y[7] > 1.5*y[6] && y[6] > 1.5*y[5]) {
		t.Errorf("probabilities %.3f and %.3f", x, y)
	}
	probability := []float64{0, 0, 1, 0, 0, 0, 0, 0}
	v.adjust(0, probability, warm/2)
	if !slices.Equal(probability, v.byValue[0]) {
		t.Errorf("at first the probabilities are %g, want %g", probability, v.byValue[0])
	}
	probability = []float64{0, 0, 1, 0, 0, 0, 0, 0}
	v.adjust(0, probability, 0.5)
	sum := 0.0
	for _, q := range probability {
		sum += q
	}
	if want := explore * ((1-guided)/levels + guided*v.byValue[0][1]); math.Abs(sum-1) > 1e-12 || math.Abs(probability[1]-want) > 1e-12 || probability[0] <= probability[1] {
		t.Errorf("adjusted to %g, which sum to %g; the second should be %g", probability, sum, want)
	}
	probability = []float64{0, 0, 1, 0, 0, 0, 0, 0}
	if v.adjust(0, probability, 1); probability[2] != 1 {
		t.Errorf("at the end it still explores: %g", probability)
	}
}
