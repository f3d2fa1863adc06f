package placer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"placer/gonet"
	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/nn"
	"placer/plan"
	"placer/problems"
)

func problem(t *testing.T, name string, devices int) *plan.Problem {
	t.Helper()
	g, _, _ := small(t, name)
	m, err := hw.Take("p100", devices, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := problems.New(g, m)
	if err != nil {
		t.Fatal(err)
	}
	p.Seed = 3
	return p
}

// TestPolicyLearns: with rewards alone, from random placements, the policy comes
// to a step clearly shorter than the best of as many random samples and than one
// device, and says so truthfully.
func TestPolicyLearns(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Budget = plan.Budget{Evaluations: 1200}
	c := DefaultPolicy()
	policy, err := NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := policy.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations > 1200 {
		t.Errorf("%d evaluations, want at most 1200", o.Evaluations)
	}
	single := p.Evaluator.Evaluate(make([]uint8, p.Graph.NumOps()), p.Priority)
	if s := p.Evaluator.Evaluate(o.Device, p.Priority); s != o.Score {
		t.Errorf("score %v, evaluated %v", o.Score, s)
	}
	if o.Score.Seconds > 0.8*single.Seconds {
		t.Errorf("step %.1f ms, one device takes %.1f ms", o.Score.Seconds*1e3, single.Seconds*1e3)
	}
	path := filepath.Join(t.TempDir(), "policy.safetensors")
	if err := policy.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		t.Fatal(err)
	}
	n, extra, err := gonet.Load(bytes.NewReader(data), backend)
	if err != nil {
		t.Fatal(err)
	}
	if n.Config().Decision.Choices != c.Devices || extra["policy"] == "" {
		t.Errorf("checkpoint for %d devices with entries %v", n.Config().Decision.Choices, extra)
	}
}

// sameOnWorkers places on one goroutine and on three, and returns what both come to.
func sameOnWorkers(t *testing.T, problem func() *plan.Problem) (first *plan.Outcome) {
	for _, workers := range []int{1, 3} {
		c := DefaultPolicy()
		c.Workers = workers
		policy, err := NewPolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		o, err := policy.Place(context.Background(), problem())
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = o
		} else if !bytes.Equal(first.Device, o.Device) || !bytes.Equal(first.Fusion, o.Fusion) {
			t.Errorf("%d workers give another plan", workers)
		}
	}
	return first
}

// TestPolicyIsDeterministic: equal seeds and budgets in evaluations give equal
// placements, whatever the workers.
func TestPolicyIsDeterministic(t *testing.T) {
	sameOnWorkers(t, func() *plan.Problem {
		p := problem(t, "wavenet2", 2)
		p.Budget = plan.Budget{Evaluations: 300}
		return p
	})
}

// TestPolicyAblations: each switch gives a network that trains.
func TestPolicyAblations(t *testing.T) {
	for name, change := range map[string]func(*PolicyConfig){
		"recurrence":   func(c *PolicyConfig) { c.Recurrence = false },
		"modulation":   func(c *PolicyConfig) { c.Modulation = false },
		"attention":    func(c *PolicyConfig) { c.Attention = false },
		"iterations":   func(c *PolicyConfig) { c.Training.Iterations = 2 },
		"curriculum":   func(c *PolicyConfig) { c.Curriculum = false },
		"free logits":  func(c *PolicyConfig) { c.FreeLogits = false },
		"identity":     func(c *PolicyConfig) { c.Features.Identity = 0 },
		"more devices": func(c *PolicyConfig) { c.Devices = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, "wavenet2", 2)
			p.Budget = plan.Budget{Evaluations: 64}
			c := DefaultPolicy()
			c.Level, c.Training.Samples = unit.Chain, 8
			change(&c)
			policy, err := NewPolicy(c)
			if err != nil {
				t.Fatal(err)
			}
			o, err := policy.Place(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if o.Evaluations == 0 || o.Evaluations > 64 || !o.Score.Feasible() {
				t.Errorf("%d evaluations, %v", o.Evaluations, o.Score)
			}
		})
	}
}

// TestMaskOfMemory: a unit too large for a device is never put there, and one too
// large for all is an error that names it.
func TestMaskOfMemory(t *testing.T) {
	p := problem(t, "rnnlm2", 2)
	p.Machine.Devices[1].Memory = 1 << 20
	e := newEnvironment(p, DefaultPolicy())
	if err := e.decideOn(p, stage{part: p.Units.Levels[unit.Chain]}); err != nil {
		t.Fatal(err)
	}
	forbidden := 0
	for u, ops := range e.part.Ops {
		var resident int64
		for _, i := range ops {
			resident += int64(p.Graph.Op(graph.OpID(i)).Resident)
		}
		if resident > 1<<20 {
			forbidden++
			if e.allowed[u*2+1] {
				t.Errorf("unit %d with %d resident bytes may go to a device of 1 MiB", u, resident)
			}
		}
	}
	if forbidden == 0 {
		t.Fatal("no unit is too large: the case tests nothing")
	}
	p.Machine.Devices[0].Memory = 1 << 20
	if err := e.decideOn(p, stage{part: p.Units.Levels[unit.Chain]}); err == nil {
		t.Error("a unit that fits no device is no error")
	}
}

// TestRewards: -sqrt(time/baseline), -10 for what does not fit, and a round's
// infeasible samples rank below its feasible ones without drowning them.
func TestRewards(t *testing.T) {
	e := &environment{baseline: 4}
	if r := e.reward(plan.Score{Seconds: 1}); r != -0.5 {
		t.Errorf("reward %v, want -0.5", r)
	}
	if r := e.reward(plan.Score{Seconds: 1, Overflow: 1}); r != -10 {
		t.Errorf("reward %v, want -10", r)
	}
	tr := &training{env: e, problem: &plan.Problem{Machine: &hw.Machine{Devices: []hw.Device{{Memory: 100}}}}}
	tr.scores = []plan.Score{{Seconds: 1}, {Seconds: 4}, {Overflow: 5}}
	rewards := []float32{-0.5, -1, -10}
	tr.soften(rewards)
	if !(rewards[2] < -1 && rewards[2] > -2) || rewards[0] != -0.5 || rewards[1] != -1 {
		t.Errorf("softened to %v", rewards)
	}
	tr.scores = []plan.Score{{Overflow: 50}, {Overflow: 5}}
	rewards = []float32{-10, -10}
	tr.soften(rewards)
	if !(rewards[0] < rewards[1] && rewards[1] <= -10) {
		t.Errorf("all infeasible: %v, want the lesser overflow to rank higher", rewards)
	}
}
