package ppo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// TestTasksSum: loss, gradients and statistics of a decision over three tasks are
// those of the tasks taken one by one, added up.
func TestTasksSum(t *testing.T) {
	const k = 4
	rows, choices := []int{7, 5, 12}, []int{3, 6, 2}
	for _, shared := range []bool{true, false} {
		copies := k
		if shared {
			copies = 1
		}
		r := rand.New(rand.NewPCG(4, 4))
		ctx := nn.NewContext(nntest.Backends(t)[0])
		value := nn.NewMat(copies, 1)
		var each []*Objective
		outputs, gradients := []nn.Mat{}, []nn.Mat{}
		for i, n := range rows {
			x := nn.NewMat(copies*n, choices[i])
			for j := range x.V {
				x.V[j] = float32(r.NormFloat64())
			}
			each = append(each, randomObjective(r, x, k, n, true))
			outputs, gradients = append(outputs, x), append(gradients, nn.NewMat(x.N, x.D))
			if i == 0 {
				outputs, gradients = append(outputs, value), append(gradients, nn.NewMat(copies, 1))
			}
		}
		all := &Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5, Return: each[0].Return}
		for s := range k {
			var a []int32
			var l, adv []float32
			for _, o := range each {
				a, l, adv = append(a, o.Actions[s]...), append(l, o.LogProb[s]...), append(adv, o.Advantage[s]...)
			}
			all.Actions, all.LogProb, all.Advantage = append(all.Actions, a), append(all.LogProb, l), append(all.Advantage, adv)
		}
		got := all.Loss(ctx, outputs, gradients)
		var want Stats
		for i, o := range each {
			if i > 0 {
				o.ValueCost = 0
			}
			at := i
			if i > 0 {
				at++ // after the values
			}
			d := nn.NewMat(outputs[at].N, outputs[at].D)
			o.Loss(ctx, []nn.Mat{outputs[at], value}, []nn.Mat{d, nn.NewMat(copies, 1)})
			want.add(o.Stats)
			if !slices.Equal(d.V, gradients[at].V) {
				t.Errorf("shared %v: the gradient of task %d differs from that of the task alone", shared, i)
			}
		}
		if math.Abs(got-want.Loss) > 1e-9 || math.Abs(all.Stats.Entropy-want.Entropy) > 1e-9 || math.Abs(all.Stats.KL3-want.KL3) > 1e-9 {
			t.Errorf("shared %v: loss %g with %+v, want the sums %+v", shared, got, all.Stats, want)
		}
	}
}

// several is a policy of one table per task.
type several []*table

func (p several) Rows() (all []int) {
	for _, t := range p {
		all = append(all, t.logits.N)
	}
	return all
}

// split returns what task i's table needs of the decisions before.
func (p several) split(i, copies int, previous []int32) (own []int32) {
	if previous == nil {
		return nil
	}
	at := 0
	for _, t := range p[:i] {
		at += t.logits.N
	}
	m := len(previous) / copies
	for k := range copies {
		own = append(own, previous[k*m+at:k*m+at+p[i].logits.N]...)
	}
	return own
}

func (p several) Forward(copies int, previous []int32) (all []nn.Mat, values []float32, err error) {
	for i, t := range p {
		all = append(all, t.rows(copies, p.split(i, copies, previous)))
	}
	return all, make([]float32, copies), nil
}

func (p several) Backward(copies int, previous []int32, o nn.Objective) (float64, error) {
	xs, _, _ := p.Forward(copies, previous)
	outputs, gradients := []nn.Mat{}, []nn.Mat{}
	for i, x := range xs {
		outputs, gradients = append(outputs, x), append(gradients, nn.NewMat(x.N, x.D))
		if i == 0 {
			outputs, gradients = append(outputs, nn.NewMat(copies, 1)), append(gradients, nn.NewMat(copies, 1))
		}
	}
	loss := o.Loss(p[0].ctx, outputs, gradients)
	gradients = append(gradients[:1], gradients[2:]...)
	for i, t := range p {
		for j, g := range gradients[i].V {
			t.grad.V[j%len(t.grad.V)] += g
		}
	}
	return loss, nil
}

func (p several) Update(rate float64) (float64, error) {
	for _, t := range p {
		if _, err := t.Update(rate); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// agree rewards the second task's choices for a node that fit the first's.
type agree struct{ n int }

func (e agree) Rewards(actions [][]int32, rewards []float32) error {
	for k, a := range actions {
		for i := range e.n {
			if a[i] == int32(i%2) && a[e.n+i] == 2-a[i] {
				rewards[k] += 1 / float32(e.n)
			}
		}
	}
	return nil
}

// TestTrainerLearnsTwoTasks that are worth something together only, with one
// iteration and with two.
func TestTrainerLearnsTwoTasks(t *testing.T) {
	for _, iterations := range []int{1, 2} {
		c := Default()
		c.Iterations, c.Entropy = iterations, 0.001
		tr := NewTrainer(c, agree{8}, several{newTable(t, 8, 2), newTable(t, 8, 3)}, rand.New(rand.NewPCG(1, 2)))
		last := float32(0)
		for range 120 {
			r, err := tr.Round(func(int) float64 { return 0.5 })
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Actions[0]) != 16 {
				t.Fatalf("a decision holds %d choices, want 16", len(r.Actions[0]))
			}
			last = 0
			for _, x := range r.Rewards {
				last += x / float32(len(r.Rewards))
			}
		}
		if last < 0.8 { // chance is 1/6
			t.Errorf("T=%d: mean reward %.2f, want at least 0.8", iterations, last)
		}
	}
}

// TestCreditReachesOneTask: credit for the second task's choices alone leaves the
// first where it is.
func TestCreditReachesOneTask(t *testing.T) {
	c := Default()
	c.Entropy = 0
	p := several{newTable(t, 4, 2), newTable(t, 4, 3)}
	tr := NewTrainer(c, agree{4}, p, rand.New(rand.NewPCG(1, 2)))
	tr.Credit = func(_ [][]int32, advantage []float32, perChoice [][]float32) {
		for k, a := range advantage {
			clear(perChoice[k])
			for i := range 4 {
				perChoice[k][4+i] = a
			}
		}
	}
	if _, err := tr.Round(func(int) float64 { return 0.3 }); err != nil {
		t.Fatal(err)
	}
	moved := func(x float32) bool { return x != 0 }
	if slices.ContainsFunc(p[0].logits.V, moved) || !slices.ContainsFunc(p[1].logits.V, moved) {
		t.Errorf("logits %v and %v, want the second alone moved", p[0].logits.V, p[1].logits.V)
	}
}

// TestGroups: samples of a group share the first task's choices and nothing else;
// the first task learns from the groups' means, the second from what is left.
func TestGroups(t *testing.T) {
	c := Default()
	c.Group = 4
	tr := NewTrainer(c, agree{8}, several{newTable(t, 8, 2), newTable(t, 8, 3)}, rand.New(rand.NewPCG(1, 2)))
	r, err := tr.Round(func(int) float64 { return 0.5 })
	if err != nil {
		t.Fatal(err)
	}
	for k := range r.Actions {
		first := r.Actions[k-k%4]
		if !slices.Equal(r.Actions[k][:8], first[:8]) {
			t.Errorf("sample %d has the first task's choices of its own", k)
		}
		if k%4 > 0 && slices.Equal(r.Actions[k][8:], first[8:]) {
			t.Errorf("sample %d has the second task's choices of its group", k)
		}
		if k%4 == 0 && k > 0 && slices.Equal(first[:8], r.Actions[0][:8]) {
			t.Errorf("group %d has the choices of group 0", k/4)
		}
	}
	means, within := groupAdvantages([]float32{1, 3, 5, 9}, 2)
	if !(math.Abs(float64(means[0])+1) < 1e-5 && means[0] == means[1] && math.Abs(float64(means[2])-1) < 1e-5) {
		t.Errorf("means %v, want -1 and 1", means)
	}
	if s := float32(math.Sqrt(2.5)); math.Abs(float64(within[0]+1/s)) > 1e-5 || math.Abs(float64(within[3]-2/s)) > 1e-5 {
		t.Errorf("within %v, want -1, 1, -2, 2 over %g", within, s)
	}
	c.Group = 3
	if c.Validate() == nil {
		t.Error("groups of 3 make up 16 samples")
	}
}

// noisy is agree beneath a large difference that the first task's choices make.
type noisy struct{ agree }

func (e noisy) Rewards(actions [][]int32, rewards []float32) error {
	for k, a := range actions {
		for i := range e.n {
			rewards[k] += 100 * float32(a[i])
			if a[e.n+i] == int32(i%3) {
				rewards[k]++
			}
		}
	}
	return nil
}

// TestGroupsHearSmallDifferences: with groups the second task learns at once what
// the first's differences hide without them.
func TestGroupsHearSmallDifferences(t *testing.T) {
	right := func(group int) (n int) {
		c := Default()
		c.Group, c.Entropy = group, 0.05 // keeps the first task's differences alive
		p := several{newTable(t, 30, 2), newTable(t, 30, 3)}
		tr := NewTrainer(c, noisy{agree{30}}, p, rand.New(rand.NewPCG(1, 2)))
		for range 10 {
			if _, err := tr.Round(func(int) float64 { return 0.1 }); err != nil {
				t.Fatal(err)
			}
		}
		best := make([]int32, 30)
		greedy(p[1].logits, best)
		for i, a := range best {
			if a == int32(i%3) {
				n++
			}
		}
		return n
	}
	if with, without := right(2), right(0); with < without+5 {
		t.Errorf("%d of 30 right with groups, %d without", with, without)
	}
}
