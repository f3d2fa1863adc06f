package gonet

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/ppo"
)

// threeTasks adds scheduling and, with two priorities a node, fusion.
func threeTasks(c *Config) {
	c.Decision.ScheduleLevels, c.Decision.FusionLevels, c.Decision.FusionKinds = 5, 3, 2
}

// randomDecision draws a choice for every node, task and kind.
func randomDecision(r *rand.Rand, c Config, n int) (all []int32) {
	for _, t := range c.Decision.Tasks() {
		for range n * t.Kinds {
			all = append(all, int32(r.IntN(t.Levels)))
		}
	}
	return all
}

// TestTaskOutputs: every task has a row of logits per node and kind, of its
// levels, and copies with decisions of their own, of all tasks, get the logits
// each gets alone.
func TestTaskOutputs(t *testing.T) {
	const n, copies = 45, 3
	c := small(6, 4)
	threeTasks(&c)
	c.Iterations = 2
	r := rand.New(rand.NewPCG(1, 2))
	b := &Batch{X: randomX(r, n, 6), Neighbours: ladder(n), Copies: copies}
	var each [][]int32
	for range copies {
		each = append(each, randomDecision(r, c, n))
	}
	b.Previous = slices.Concat(each...)
	net, alone := newNetwork(t, c, 3, 1), newNetwork(t, c, 3, 1)
	out, err := net.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	var all []nn.Mat
	for _, x := range out.Tasks {
		all = append(all, x.Clone())
	}
	if rows := net.On(b).Rows(); !slices.Equal(rows, []int{n, n, 2 * n}) {
		t.Errorf("%v choices, want one per node and kind", rows)
	}
	for i, d := range []int{4, 5, 3} {
		if all[i].D != d {
			t.Errorf("task %d has %d levels, want %d", i, all[i].D, d)
		}
	}
	for k := range copies {
		one, err := alone.Forward(&Batch{X: b.X, Neighbours: b.Neighbours, Previous: each[k]})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range one.Tasks {
			near(t, "logits", all[i].Rows(k*x.N, (k+1)*x.N).V, x.V)
		}
	}
	// A changed decision of any task and kind changes the logits.
	for _, at := range []int{0, n, 2 * n, 2*n + 1} {
		moved := slices.Clone(each[0])
		moved[at] = (moved[at] + 1) % 3
		one, err := alone.Forward(&Batch{X: b.X, Neighbours: b.Neighbours, Previous: moved})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(one.Logits.Row(0), all[0].Row(0)) {
			t.Errorf("decision %d does not reach the logits of its node", at)
		}
	}
}

// joint rewards a second task that agrees with the first, and a third that
// follows the node.
type joint struct{ n int }

func (e joint) Rewards(actions [][]int32, rewards []float32) error {
	for k, a := range actions {
		hit := 0
		for i := range e.n {
			if a[e.n+i] == a[i] {
				hit++
			}
			if a[2*e.n+i] == int32(i%2) {
				hit++
			}
		}
		rewards[k] = float32(hit) / float32(2*e.n)
	}
	return nil
}

// TestTasksAreLearnt by PPO, with instance logits and without.
func TestTasksAreLearnt(t *testing.T) {
	const n, f = 24, 6
	for _, free := range []bool{false, true} {
		c := small(f, 3)
		c.Decision.ScheduleLevels, c.Decision.FusionLevels = 3, 2
		net := newNetwork(t, c, 2, 1)
		b := &Batch{X: nn.NewMat(n, f), Neighbours: chainLists(n)}
		for i := range n {
			b.X.Row(i)[i%3] = 1
			b.X.Row(i)[3+i%2] = 1
		}
		if free {
			b.InstanceLogits = net.AddInstanceLogits("g", n)
			for _, p := range b.InstanceLogits {
				p.Rate = 20
			}
		}
		pc := ppo.Default()
		pc.Entropy = 0.003
		tr := ppo.NewTrainer(pc, joint{n}, net.On(b), rand.New(rand.NewPCG(7, 8)))
		var first, last float32
		for i := range 60 {
			round, err := tr.Round(func(int) float64 { return 1e-3 })
			if err != nil {
				t.Fatal(err)
			}
			if last = mean(round.Rewards); i == 0 {
				first = last
			}
		}
		if last < first+0.3 {
			t.Errorf("instance logits %v: mean reward from %.2f to %.2f, want a gain of 0.3", free, first, last)
		}
		net.RemoveInstanceLogits("g")
		if k := slices.IndexFunc(net.Params().All(), func(p *nn.Param) bool { return p.Name[:4] == "free" }); k >= 0 {
			t.Errorf("parameter %s is left", net.Params().All()[k].Name)
		}
	}
}

// TestTasksInCheckpoints: a network of three tasks comes back from its file with
// its instance logits.
func TestTasksInCheckpoints(t *testing.T) {
	const n, f = 12, 6
	all := small(f, 4)
	all.Iterations = 2
	threeTasks(&all)
	net := newNetwork(t, all, 2, 1)
	b := &Batch{X: randomX(rand.New(rand.NewPCG(1, 2)), n, f), Neighbours: ladder(n)}
	b.InstanceLogits = net.AddInstanceLogits("g", n)
	if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Update(1e-2); err != nil {
		t.Fatal(err)
	}
	want, err := net.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := net.Save(&w, nil); err != nil {
		t.Fatal(err)
	}
	again, _, err := Load(bytes.NewReader(w.Bytes()), backend(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if again.Config() != all {
		t.Errorf("configuration %+v, want %+v", again.Config(), all)
	}
	b.InstanceLogits = again.AddInstanceLogits("g", n)
	got, err := again.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range want.Tasks {
		if !slices.Equal(got.Tasks[i].V, x.V) {
			t.Errorf("logits of task %d differ in the loaded network", i)
		}
	}
}
