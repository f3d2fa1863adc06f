package ppo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// table is a policy of free logits per node: no network. With a previous
// decision it adds stay to the logit of the same choice.
type table struct {
	ctx    *nn.Context
	logits nn.Mat // [N,A]
	value  float32
	grad   nn.Mat
	dValue float32
	stay   float32
	calls  []int // copies of each Forward
}

func newTable(t testing.TB, n, a int) *table {
	return &table{ctx: nn.NewContext(nntest.Backends(t)[0]), logits: nn.NewMat(n, a), grad: nn.NewMat(n, a), stay: 1}
}

func (p *table) Rows() []int { return []int{p.logits.N} }

func (p *table) rows(copies int, previous []int32) nn.Mat {
	x := nn.NewMat(copies*p.logits.N, p.logits.D)
	for k := range copies {
		copy(x.Rows(k*p.logits.N, (k+1)*p.logits.N).V, p.logits.V)
	}
	for r, a := range previous {
		x.Row(r)[a] += p.stay
	}
	return x
}

func (p *table) Forward(copies int, previous []int32) ([]nn.Mat, []float32, error) {
	p.calls = append(p.calls, copies)
	return []nn.Mat{p.rows(copies, previous)}, slices.Repeat([]float32{p.value}, copies), nil
}

func (p *table) Backward(copies int, previous []int32, o nn.Objective) (float64, error) {
	x := p.rows(copies, previous)
	v := nn.NewMat(copies, 1)
	for i := range v.V {
		v.V[i] = p.value
	}
	dx, dv := nn.NewMat(x.N, x.D), nn.NewMat(copies, 1)
	loss := o.Loss(p.ctx, []nn.Mat{x, v}, []nn.Mat{dx, dv})
	for i, g := range dx.V {
		p.grad.V[i%len(p.grad.V)] += g
	}
	for _, g := range dv.V {
		p.dValue += g
	}
	return loss, nil
}

func (p *table) Update(rate float64) (float64, error) {
	for i, g := range p.grad.V {
		p.logits.V[i] -= float32(rate) * g * float32(p.logits.N)
	}
	p.value -= 0.3 * p.dValue // the value's own rate: its error is quadratic
	clear(p.grad.V)
	p.dValue = 0
	return 0, nil
}

// matches rewards the share of nodes that choose node index mod 3.
type matches struct{ evaluated int }

func (m *matches) Rewards(actions [][]int32, rewards []float32) error {
	for k, a := range actions {
		m.evaluated++
		for i, c := range a {
			if int(c) == i%3 {
				rewards[k] += 1 / float32(len(a))
			}
		}
	}
	return nil
}

// TestTrainerImproves on every baseline, with one and with two iterations.
func TestTrainerImproves(t *testing.T) {
	for _, baseline := range []Baseline{Standardised, LearnedValue, AverageReward} {
		for _, iterations := range []int{1, 2} {
			c := Default()
			c.Baseline, c.Iterations, c.Entropy, c.Minibatches = baseline, iterations, 0.001, 2
			policy, env := newTable(t, 12, 3), &matches{}
			tr := NewTrainer(c, env, policy, rand.New(rand.NewPCG(1, 2)))
			var means []float64
			rate := 0.3
			if baseline != Standardised { // their advantages are smaller numbers
				rate = 3
			}
			for range 80 {
				r, err := tr.Round(func(int) float64 { return rate })
				if err != nil {
					t.Fatal(err)
				}
				m := 0.0
				for _, x := range r.Rewards {
					m += float64(x) / float64(len(r.Rewards))
				}
				means = append(means, m)
				if r.Updates != c.Epochs*c.Minibatches {
					t.Fatalf("%d updates, want %d", r.Updates, c.Epochs*c.Minibatches)
				}
			}
			if last := means[len(means)-1]; last < means[0]+0.3 {
				t.Errorf("%v, T=%d: mean reward from %.2f to %.2f, want a gain of 0.3", baseline, iterations, means[0], last)
			}
			if env.evaluated != 80*c.Samples {
				t.Errorf("%d evaluations, want %d: one per sample, not per iteration", env.evaluated, 80*c.Samples)
			}
			want := []int{1, 1}
			if iterations == 2 {
				want = []int{1, c.Samples}
			}
			if got := policy.calls[:2]; !slices.Equal(got, want) {
				t.Errorf("T=%d: copies in the first calls %v, want %v", iterations, got, want)
			}
		}
	}
}

// TestCreditReachesNodes: with credit on node 0 alone no other node moves.
func TestCreditReachesNodes(t *testing.T) {
	c := Default()
	c.Entropy = 0
	policy := newTable(t, 4, 3)
	tr := NewTrainer(c, &matches{}, policy, rand.New(rand.NewPCG(1, 2)))
	tr.Credit = func(_ [][]int32, advantage []float32, perNode [][]float32) {
		for k, a := range advantage {
			clear(perNode[k])
			perNode[k][0] = a
		}
	}
	if _, err := tr.Round(func(int) float64 { return 0.3 }); err != nil {
		t.Fatal(err)
	}
	moved := slices.ContainsFunc(policy.logits.Row(0), func(v float32) bool { return v != 0 })
	still := !slices.ContainsFunc(policy.logits.Rows(1, 4).V, func(v float32) bool { return v != 0 })
	if !moved || !still {
		t.Errorf("logits %v, want only row 0 moved", policy.logits.V)
	}
}

// TestAverageReward: GDP subtracts the average reward of all earlier trials.
func TestAverageReward(t *testing.T) {
	c := Default()
	c.Baseline = AverageReward
	tr := NewTrainer(c, &matches{}, newTable(t, 2, 3), rand.New(rand.NewPCG(1, 2)))
	first := tr.advantages(&Round{Rewards: []float32{1, 3}})
	second := tr.advantages(&Round{Rewards: []float32{4, 2}})
	if first[0][0] != 0 || first[1][0] != 0 || second[0][0] != 2 || second[1][0] != 0 {
		t.Errorf("advantages %v then %v, want 0 0 then 2 0", first, second)
	}
}

func TestStandardise(t *testing.T) {
	x := []float32{1, 2, 3}
	Standardise(x, x)
	if math.Abs(float64(x[0])+math.Sqrt(1.5)) > 1e-4 || x[1] != 0 {
		t.Errorf("standardised %v", x)
	}
	same := []float32{2, 2}
	Standardise(same, same)
	if same[0] != 0 || same[1] != 0 {
		t.Errorf("equal rewards give %v, want 0 0", same)
	}
}

// TestSample: frequencies follow the softmax, forbidden choices never occur, log
// probabilities are those of the choices, and a seed gives the same draws.
func TestSample(t *testing.T) {
	const n = 20000
	logits := nn.NewMat(n, 4)
	for i := range n {
		copy(logits.Row(i), []float32{0, float32(math.Log(2)), nn.Masked, float32(math.Log(5))})
	}
	want := []float64{1. / 8, 2. / 8, 0, 5. / 8}
	a, l := make([]int32, n), make([]float32, n)
	Sample(logits, 1, rand.New(rand.NewPCG(3, 4)), a, l)
	var count [4]float64
	for i, c := range a {
		count[c] += 1. / n
		if math.Abs(float64(l[i])-math.Log(want[c])) > 1e-6 {
			t.Fatalf("log probability of choice %d is %g, want %g", c, l[i], math.Log(want[c]))
		}
	}
	for c, w := range want {
		if d := math.Abs(count[c] - w); d > 4*math.Sqrt(w*(1-w)/n) { // four deviations
			t.Errorf("choice %d drawn with frequency %.4f, want %.4f", c, count[c], w)
		}
	}
	again := make([]int32, n)
	Sample(logits, 1, rand.New(rand.NewPCG(3, 4)), again, nil)
	if !slices.Equal(a, again) {
		t.Error("one seed gave two samples")
	}
	greedy(logits, again)
	if again[0] != 3 {
		t.Errorf("greedy choice %d, want 3", again[0])
	}
}

// greedy writes the most likely choice of each row into actions, the lower one of
// equals.
func greedy(logits nn.Mat, actions []int32) {
	for i := range actions {
		row := logits.Row(i)
		actions[i] = int32(slices.Index(row, slices.Max(row)))
	}
}

func TestConfigValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	c := Default()
	c.Minibatches = 3
	if c.Validate() == nil {
		t.Error("3 minibatches of 16 samples are valid")
	}
}

// recorder keeps the objectives that a policy is asked to follow.
type recorder struct {
	*table
	seen []*Objective
}

func (p *recorder) Backward(copies int, previous []int32, o nn.Objective) (float64, error) {
	p.seen = append(p.seen, o.(*Objective))
	return p.table.Backward(copies, previous, o)
}

// TestTrainerObjectives: each sample of a minibatch has its own reward as the value's target,
// and the entropy bonus is the one set last.
func TestTrainerObjectives(t *testing.T) {
	c := Default()
	c.Baseline, c.Minibatches, c.Epochs, c.Entropy = LearnedValue, 2, 1, 0.5
	policy, env := &recorder{table: newTable(t, 12, 3)}, &matches{}
	tr := NewTrainer(c, env, policy, rand.New(rand.NewPCG(1, 2)))
	tr.SetEntropy(0.25)
	if _, err := tr.Round(func(int) float64 { return 0.1 }); err != nil {
		t.Fatal(err)
	}
	if len(policy.seen) != 2 {
		t.Fatalf("%d minibatches, want 2", len(policy.seen))
	}
	for _, o := range policy.seen {
		want := make([]float32, len(o.Actions))
		if err := (&matches{}).Rewards(o.Actions, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.Return, want) || slices.Min(want) == slices.Max(want) {
			t.Errorf("the value's targets are %v, the rewards %v", o.Return, want)
		}
		if o.Entropy != 0.25 {
			t.Errorf("the entropy bonus is %g", o.Entropy)
		}
	}
}
