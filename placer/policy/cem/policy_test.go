package cem

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"placer/graph/unit"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/units"
)

// TestElites: the best share of the last samples, the best first, the older of equals
// before the younger, what does not fit behind what does.
func TestElites(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	const window = 20
	x := NewElites(window, 0.25)
	for round := range 5 {
		var actions [][]int32
		var scores []plan.Score
		for k := range 8 {
			actions = append(actions, []int32{int32(8*round + k)})
			scores = append(scores, plan.Score{Value: float64(1 + r.IntN(6))})
		}
		scores[3].Overflow, scores[3].Value = 1, 0.1 // does not fit
		x.Add(actions, scores)
	}
	if len(x.recent) != window || x.recent[0].Action[0] != 20 {
		t.Fatalf("%d samples kept from number %v on, want %d from 20", len(x.recent), x.recent[0].Action, window)
	}
	taken := make([]bool, window)
	for _, got := range x.Best() {
		best := -1
		for k, s := range x.recent {
			if !taken[k] && s.Score.Feasible() && (best < 0 || s.Score.Value < x.recent[best].Score.Value) {
				best = k
			}
		}
		taken[best] = true
		if got.Action[0] != x.recent[best].Action[0] {
			t.Errorf("sample %d, want %d", got.Action[0], x.recent[best].Action[0])
		}
	}
	if n := len(x.Best()); n != window/4 {
		t.Errorf("%d elites, want %d", n, window/4)
	}
}

// TestUpdate: probabilities become a mixture of what they were and the elites' frequencies;
// a device that a unit cannot have keeps the probability 0 and is never drawn.
func TestUpdate(t *testing.T) {
	x := &distribution{of: [][]float64{{0.5, 0.25, 0.25}, {1, 0, 0}}}
	x.update([]Sample{{Action: []int32{2, 0}}, {Action: []int32{2, 0}}, {Action: []int32{1, 0}}, {Action: []int32{2, 0}}}, 0.4)
	for i, want := range [][]float64{{0.3, 0.25, 0.45}, {1, 0, 0}} {
		for a := range want {
			if math.Abs(x.of[i][a]-want[a]) > 1e-12 {
				t.Errorf("choice %d: probabilities %g, want %g", i, x.of[i], want)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	counts := make([]int, 3)
	for range 10000 {
		a := x.sample(r)
		counts[a[0]]++
		if a[1] != 0 {
			t.Fatal("a level of probability 0 was drawn")
		}
	}
	for a, want := range []float64{0.3, 0.25, 0.45} {
		if math.Abs(float64(counts[a])/10000-want) > 0.02 {
			t.Errorf("level %d was drawn %d times of 10000, its probability is %g", a, counts[a], want)
		}
	}
}

// TestStart: the middle levels have a head start, forbidden devices the probability 0, and a
// stage begins with what was learnt in the one before, softened.
func TestStart(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Place|plan.Schedule)
	p.Machine.Devices[1].Memory = 1 << 20
	run, err := rollout.New(p, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, all := range [][]uint8{nil, make([]uint8, p.Graph.NumOps())} {
		l := &learner{Config: Default(), run: run, decoder: rollout.NewDecoder(p), seconds: p.Evaluator.OpSeconds(0)}
		s := stageOf(p.Units.Levels[unit.Chain], all)
		x, err := l.start(s, curriculum.Learnt{})
		if err != nil {
			t.Fatal(err)
		}
		n := s.Units.NumUnits()
		for u := range n {
			switch device := x.of[u]; {
			case device[1] == 0:
				seen++
			case all == nil && device[0] != 0.5, all != nil && device[0] < 0.9:
				t.Errorf("unit %d begins with probabilities %g", u, device)
			}
			level := x.of[n+u]
			if level[2] < 0.9 || level[0] != level[4] {
				t.Errorf("unit %d begins with levels %g", u, level)
			}
		}
		again, err := l.start(s, curriculum.Learnt{Stage: s, Logits: x.logits()})
		if err != nil {
			t.Fatal(err)
		}
		if q := again.of[n][0] / again.of[n][2]; math.Abs(q-math.Exp(-2.5)) > 1e-4 {
			t.Errorf("carried, a level has %g of the best one's probability, want %g", q, math.Exp(-2.5))
		}
	}
	if seen == 0 {
		t.Error("no unit is too large: the case tests nothing")
	}
}

// TestPolicy: every set of tasks is decided alike on one goroutine and on three, and
// the plan takes what is said of it; with a placement to start from it is no worse.
func TestPolicy(t *testing.T) {
	for tasks := plan.Tasks(1); tasks <= plan.AllTasks; tasks++ {
		var first *plan.Outcome
		for _, workers := range []int{1, 3} {
			p := problemtest.OnP100s(t, "wavenet2", 2, tasks)
			p.Budget.Evaluations = 200
			if !tasks.Has(plan.Place) {
				p.Device = make([]uint8, p.Graph.NumOps())
			}
			c := Default()
			c.Workers = workers
			o, err := Policy{c}.Place(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			d := o.Decision
			if d.Priority == nil {
				d.Priority = p.Priority
			}
			if s := p.Evaluator.Evaluate(d); s != o.Score || o.Evaluations > 200 {
				t.Errorf("%v: score %v after %d evaluations, evaluated %v", tasks, o.Score, o.Evaluations, s)
			}
			if first == nil {
				first = o
			} else if !bytes.Equal(first.Device, o.Device) || !slices.Equal(first.Priority, o.Priority) || !bytes.Equal(first.Fusion, o.Fusion) {
				t.Errorf("%v: %d workers give another plan", tasks, workers)
			}
		}
	}
}

// TestPolicyLearns: from probabilities all alike the policy comes to a step clearly shorter
// than one device's, and a refinement of what it came to is hardly worse.
func TestPolicyLearns(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Place)
	p.Budget.Evaluations = 1200
	single := p.Evaluate(make([]uint8, p.Graph.NumOps()))
	o, err := Policy{Default()}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Score.Value > 0.75*single.Value {
		t.Errorf("step %g s, one device takes %g s", o.Score.Value, single.Value)
	}
	p.Device, p.Budget.Evaluations = o.Device, 300
	near, err := Refiner{Default()}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if near.Score.Value > 1.02*o.Score.Value {
		t.Errorf("near a placement of %v the best is %v", o.Score, near.Score)
	}
}

// finestFits makes all devices as small as the finest units of the curricula of p at cells
// allow, and reports if the coarsest fit them nevertheless.
func finestFits(t *testing.T, p *plan.Problem) {
	t.Helper()
	all := curriculum.Curricula(p.Graph, p.Units, unit.Cell, p.Evaluator.OpSeconds(0), p.Machine.NumDevices())
	fit := func(memory int, x *unit.Partition) bool {
		for d := range p.Machine.Devices {
			p.Machine.Devices[d].Memory = units.Bytes(memory)
		}
		_, err := rollout.Allowed(p, x)
		if err != nil && !errors.Is(err, rollout.ErrTooCoarse) {
			t.Fatal(err)
		}
		return err == nil
	}
	least := 0
	for _, stages := range all {
		least = max(least, sort.Search(1<<34, func(m int) bool { return fit(m, stages[len(stages)-1].Units) }))
	}
	if fit(least, all[0][0].Units) || !fit(least, all[0][len(all[0])-1].Units) {
		t.Fatal("the coarsest units fit where the finest do: the case tests nothing")
	}
}

// TestTooCoarse: where one of two layers is larger than any of four devices, and the
// cells are not, the stages of layers are left out; where not even cells fit, that is the
// error.
func TestTooCoarse(t *testing.T) {
	c := Default()
	c.Level = unit.Cell
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 4, plan.Place)
	p.Budget.Evaluations = 200
	finestFits(t, p)
	o, err := Policy{c}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations < 100 || o.Score != p.Evaluate(o.Device) || len(o.Notes) > 0 {
		t.Errorf("%d of 200 evaluations, score %v, notes %q", o.Evaluations, o.Score, o.Notes)
	}
	for d := range p.Machine.Devices {
		p.Machine.Devices[d].Memory = 1
	}
	if _, err := (Policy{c}).Place(t.Context(), p); !errors.Is(err, rollout.ErrTooCoarse) {
		t.Errorf("devices of a byte: %v", err)
	}
}

func stageOf(p *unit.Partition, near []uint8) curriculum.Stage {
	return curriculum.Stage{Units: p, Near: near}
}
