package goone

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/nn"
	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/rollout"
	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/units"
)

// TestPolicyLearns: with rewards alone, from random placements, the policy comes
// to a step clearly shorter than the best of as many random samples and than one
// device, and says so truthfully.
func TestPolicyLearns(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Place)
	p.Budget = plan.Budget{Evaluations: 1200}
	c := Default()
	policy, err := New(c)
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
	single := p.Evaluate(make([]uint8, p.Graph.NumOps()))
	if s := p.Evaluate(o.Device); s != o.Score {
		t.Errorf("score %v, evaluated %v", o.Score, s)
	}
	if o.Score.Value > 0.8*single.Value {
		t.Errorf("step %.1f ms, one device takes %.1f ms", o.Score.Value*1e3, single.Value*1e3)
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
	if n.Config().Decision.Choices != networkDevices || extra["policy"] == "" {
		t.Errorf("checkpoint for %d devices with entries %v", n.Config().Decision.Choices, extra)
	}
}

// sameOnWorkers places on one goroutine and on three, and returns what both come to.
func sameOnWorkers(t *testing.T, problem func() *plan.Problem) (first *plan.Outcome) {
	for _, workers := range []int{1, 3} {
		c := Default()
		c.Workers = workers
		policy, err := New(c)
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
		p := problemtest.OnP100s(t, "wavenet2", 2, plan.Place)
		p.Budget = plan.Budget{Evaluations: 300}
		return p
	})
}

// TestPolicyAblations: each switch gives a network that trains.
func TestPolicyAblations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"recurrence": func(c *Config) { c.Recurrence = false },
		"modulation": func(c *Config) { c.Modulation = false },
		"attention":  func(c *Config) { c.Attention = false },
		"iterations": func(c *Config) { c.Iterations = 2 },
		"curriculum": func(c *Config) { c.Curriculum = false },
		"instance":   func(c *Config) { c.InstanceRate = 0 },
		"identity":   func(c *Config) { c.Identity = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := problemtest.OnP100s(t, "wavenet2", 2, plan.Place)
			p.Budget = plan.Budget{Evaluations: 64}
			c := Default()
			c.Level, c.Samples = unit.Chain, 8
			change(&c)
			policy, err := New(c)
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

// trainerOf returns a trainer of chains on p, of one worker.
func trainerOf(t *testing.T, p *plan.Problem) *trainer {
	t.Helper()
	run, err := rollout.New(p, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	x := &trainer{Policy: &Policy{config: Default()}, ctx: t.Context(), run: run, decoder: rollout.NewDecoder(p), seconds: p.Evaluator.OpSeconds(0)}
	x.decoder.On(p.Units.Levels[unit.Chain], false)
	run.Decodes(x.decoder.Decode)
	return x
}

// TestRewards: -sqrt(time/baseline) with the serial sum on the first device as
// baseline, -10 for what does not fit, and a round's infeasible samples rank below its
// feasible ones without drowning them (GO, section 4.1).
func TestRewards(t *testing.T) {
	p := problemtest.OnP100s(t, "wavenet2", 2, plan.Place)
	x := trainerOf(t, p)
	rewards := make([]float32, 1)
	if err := x.Rewards([][]int32{make([]int32, x.decoder.Units.NumUnits())}, rewards); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, s := range x.seconds {
		sum += s
	}
	if want := -math.Sqrt(x.run.Scores[0].Value / sum); math.Abs(float64(rewards[0])-want) > 1e-6 {
		t.Errorf("reward %g, want %g", rewards[0], want)
	}
	rewards = []float32{-0.5, -1, -10}
	clipInfeasible(rewards, []plan.Score{{Value: 1}, {Value: 4}, {Overflow: 5}}, 100)
	if !(rewards[2] < -1 && rewards[2] > -2) || rewards[0] != -0.5 || rewards[1] != -1 {
		t.Errorf("softened to %v", rewards)
	}
	rewards = []float32{-10, -10}
	clipInfeasible(rewards, []plan.Score{{Overflow: 50}, {Overflow: 5}}, 100)
	if !(rewards[0] < rewards[1] && rewards[1] <= -10) {
		t.Errorf("all infeasible: %v, want the lesser overflow to rank higher", rewards)
	}
}

// TestTasks: the policy decides every subset of the tasks, leaves the rest as
// given, says truthfully what its plan takes, and its plan does not depend on
// the number of workers.
func TestTasks(t *testing.T) {
	base := problemtest.OnP100s(t, "trfxl2", 2, plan.Place)
	given := make([]uint8, base.Graph.NumOps())
	for i := range given {
		given[i] = uint8(base.Units.Levels[unit.Chain].Of[i] % 2)
		if k := base.Graph.Op(graph.OpID(i)).Group; k > 0 {
			given[i] = uint8(k % 2)
		}
	}
	for tasks := plan.Tasks(1); tasks <= plan.AllTasks; tasks++ {
		var first *plan.Outcome
		for _, workers := range []int{1, 2} {
			if workers > 1 && tasks != plan.AllTasks {
				continue
			}
			p := *base
			p.Evaluator, p.Tasks, p.Budget = base.Evaluator.Clone(), tasks, plan.Budget{Evaluations: 64}
			p.Fusion = slices.Repeat([]uint8{1}, p.Graph.NumOps())
			if !tasks.Has(plan.Place) {
				p.Device = given
			}
			c := Default()
			c.Workers = workers
			policy, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			o, err := policy.Place(context.Background(), &p)
			if err != nil {
				t.Fatal(err)
			}
			if (o.Priority != nil) != tasks.Has(plan.Schedule) || (o.Fusion != nil) != tasks.Has(plan.Fuse) {
				t.Errorf("%v: outcome with priorities %v and fusion %v", tasks, o.Priority != nil, o.Fusion != nil)
			}
			if !tasks.Has(plan.Place) && !bytes.Equal(o.Device, given) {
				t.Errorf("%v: the given placement was changed", tasks)
			}
			priority, fusion := o.Priority, o.Fusion
			if priority == nil {
				priority = p.Priority
			}
			if fusion == nil {
				fusion = p.Fusion
			}
			if s := p.Evaluator.Evaluate(plan.Decision{Device: o.Device, Priority: priority, Fusion: fusion}); s != o.Score {
				t.Errorf("%v: score %v, evaluated %v", tasks, o.Score, s)
			}
			if first == nil {
				first = o
			} else if !bytes.Equal(first.Device, o.Device) || !slices.Equal(first.Priority, o.Priority) || !bytes.Equal(first.Fusion, o.Fusion) {
				t.Errorf("%v: %d workers give another plan", tasks, workers)
			}
		}
	}
	p := *base
	p.Tasks, p.Budget = plan.Fuse, plan.Budget{Evaluations: 10}
	policy, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Place(context.Background(), &p); err == nil {
		t.Error("no placement and none to make: no error")
	}
}

// TestTooCoarse: where some layer is larger than any of four devices, and the cells are
// not, the stages of layers are left out, and training goes on with what fits.
func TestTooCoarse(t *testing.T) {
	c := Default()
	c.Level, c.Samples = unit.Cell, 8
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 4, plan.Place)
	p.Budget.Evaluations = 96
	all := curriculum.Curricula(p.Graph, p.Units, c.Level, p.Evaluator.OpSeconds(0), 4)
	fit := func(memory int, x *unit.Partition) bool {
		for d := range p.Machine.Devices {
			p.Machine.Devices[d].Memory = units.Bytes(memory)
		}
		_, err := rollout.Allowed(p, x)
		return err == nil
	}
	least := 0
	for _, stages := range all {
		least = max(least, sort.Search(1<<34, func(m int) bool { return fit(m, stages[len(stages)-1].Units) }))
	}
	if fit(least, all[0][0].Units) {
		t.Fatal("layers fit where cells do: the case tests nothing")
	}
	policy, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	o, err := policy.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations < 48 || o.Score != p.Evaluate(o.Device) {
		t.Errorf("%d of 96 evaluations, score %v, notes %q", o.Evaluations, o.Score, o.Notes)
	}
}

// crowded has what is on one device alone not fit.
type crowded struct{ plan.Evaluator }

func (c crowded) Clone() plan.Evaluator { return crowded{c.Evaluator.Clone()} }

func (c crowded) Evaluate(d plan.Decision) plan.Score {
	s := c.Evaluator.Evaluate(d)
	if slices.Min(d.Device) == slices.Max(d.Device) {
		s.Overflow = 1
	}
	return s
}

// TestRewardsOfARound: where some of a round fit, the others rank below them, by hardly more than
// their range.
func TestRewardsOfARound(t *testing.T) {
	p := problemtest.OnP100s(t, "wavenet2", 2, plan.Place)
	p.Evaluator = crowded{p.Evaluator}
	x := trainerOf(t, p)
	n := x.decoder.Units.NumUnits()
	one, split, last := make([]int32, n), make([]int32, n), make([]int32, n)
	for u := range n {
		split[u] = int32(u % 2)
	}
	last[n-1] = 1
	rewards := make([]float32, 3)
	if err := x.Rewards([][]int32{one, split, last}, rewards); err != nil {
		t.Fatal(err)
	}
	low, high := min(rewards[1], rewards[2]), max(rewards[1], rewards[2])
	if !(low < high && rewards[0] < low && rewards[0] >= low-(high-low)-0.01) {
		t.Errorf("rewards %v, of which the first does not fit", rewards)
	}
}
