package gonet

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
	"placer/ppo"
)

func forward(t *testing.T, n *Network, b *Batch) (nn.Mat, []float32) {
	t.Helper()
	o, err := n.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	return o.Logits.Clone(), slices.Clone(o.Values)
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i] - w)); d > 1e-5 {
			t.Fatalf("%s: number %d is %g, want %g", what, i, got[i], w)
		}
	}
}

// TestCopies: copies with decisions of their own get the logits each gets alone,
// and their gradients add up.
func TestCopies(t *testing.T) {
	c := small(6, 4)
	c.Iterations = 2
	const n, copies = 45, 3
	r := rand.New(rand.NewPCG(1, 2))
	b := &Batch{X: randomX(r, n, 6), Neighbours: ladder(n), Copies: copies}
	labels := make([]int32, n)
	for range copies * n {
		b.Previous = append(b.Previous, int32(r.IntN(5))-1)
	}
	for i := range labels {
		labels[i] = int32(r.IntN(4))
	}
	net, alone := newNetwork(t, c, 3, 1), newNetwork(t, c, 3, 1)
	logits, values := forward(t, net, b)
	if _, err := net.Backward(b, &nn.CrossEntropy{Labels: labels}); err != nil {
		t.Fatal(err)
	}
	for k := range copies {
		one := &Batch{X: b.X, Neighbours: b.Neighbours, Previous: b.Previous[k*n : (k+1)*n]}
		l, v := forward(t, alone, one)
		near(t, "logits", logits.Rows(k*n, (k+1)*n).V, l.V)
		near(t, "value", values[k:k+1], v)
		if _, err := alone.Backward(one, &nn.CrossEntropy{Labels: labels, Weight: 1. / copies}); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range net.Params().All() {
		near(t, "gradient of "+p.Name, p.Grad, alone.Params().All()[i].Grad)
	}
	none, _ := forward(t, net, &Batch{X: b.X, Neighbours: b.Neighbours})
	minus := slices.Repeat([]int32{-1}, n)
	same, _ := forward(t, net, &Batch{X: b.X, Neighbours: b.Neighbours, Previous: minus})
	if !slices.Equal(none.V, same.V) {
		t.Error("no decisions before and decisions of -1 differ")
	}
}

// TestMaskedChoices: a forbidden device is never chosen, has probability 0, and
// leaves the gradient finite.
func TestMaskedChoices(t *testing.T) {
	const n, f, a = 30, 6, 4
	net := newNetwork(t, small(f, a), 3, 1)
	r := rand.New(rand.NewPCG(1, 2))
	b := &Batch{X: randomX(r, n, f), Neighbours: ladder(n)}
	for _, allowed := range [][]bool{{true, false, true, false}, slices.Repeat([]bool{false, true, true, false}, n)} {
		b.Allowed = nil
		free, _ := forward(t, net, b)
		b.Allowed = allowed
		logits, _ := forward(t, net, b)
		actions, logProb := make([]int32, n), make([]float32, n)
		ppo.Sample(logits, 1, r, actions, logProb)
		p := make([]float64, a)
		for v, c := range actions {
			if !allowed[(v*a+int(c))%len(allowed)] {
				t.Fatalf("node %d chose forbidden %d", v, c)
			}
			nn.SoftmaxRow(p, logits.Row(v))
			for i, q := range p {
				ok := allowed[(v*a+i)%len(allowed)]
				if ok == (q == 0) {
					t.Fatalf("node %d: choice %d, allowed %v, has probability %g", v, i, ok, q)
				}
				if ok && logits.Row(v)[i] != free.Row(v)[i] {
					t.Fatalf("node %d: the mask changed an allowed logit", v)
				}
			}
		}
		o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, Actions: [][]int32{actions}, LogProb: [][]float32{logProb}, Advantage: [][]float32{{1}}}
		if _, err := net.Backward(b, o); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Update(1e-3); err != nil { // refuses what is not finite
			t.Fatal(err)
		}
	}
}

// TestGradientOfTheWhole: the loss falls along the gradient as fast as its norm
// says, for the PPO objective on all parts of the network, with one task and with
// three. Memory is off: through it the gradient is not the derivative.
func TestGradientOfTheWhole(t *testing.T) {
	const n, f, samples = 40, 6, 3
	for name, change := range map[string]func(c *Config){
		"placement":      func(c *Config) {},
		"literal":        func(c *Config) { c.Embedding.Residual, c.Decision.HeadResidual = false, false },
		"three tasks":    func(c *Config) { threeTasks(c) },
		"literal, three": func(c *Config) { threeTasks(c); c.Embedding.Residual, c.Decision.HeadResidual = false, false },
	} {
		c := small(f, 4)
		c.Decision.Memory, c.Iterations = 0, 2
		change(&c)
		net := newNetwork(t, c, 3, 1)
		r := rand.New(rand.NewPCG(1, 2))
		b := &Batch{X: randomX(r, n, f), Neighbours: ladder(n), Copies: samples, InstanceLogits: net.AddInstanceLogits("g", n)}
		o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5, Return: []float32{1, 2, 3}}
		for k := range samples {
			act, before := randomDecision(r, c, n), randomDecision(r, c, n)
			before[k] = -1
			lp := make([]float32, len(act))
			at := 0
			for _, task := range c.Decision.Tasks() {
				for range n * task.Kinds {
					lp[at] = -float32(math.Log(float64(task.Levels)))
					at++
				}
			}
			b.Previous = append(b.Previous, before...)
			o.Actions, o.LogProb = append(o.Actions, act), append(o.LogProb, lp)
			o.Advantage = append(o.Advantage, []float32{float32(k) - 1})
		}
		loss := func() float64 {
			l, err := net.Backward(b, o)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		got, norm := nntest.Slope(net.Params(), 3e-3, loss)
		for _, p := range net.Params().All() {
			if !slices.ContainsFunc(p.Grad, func(g float32) bool { return g != 0 }) {
				t.Errorf("%s: parameter %s has no gradient", name, p.Name)
			}
		}
		if math.Abs(got/norm-1) > 0.02 {
			t.Errorf("%s: the loss changes by %g along the gradient, its squared norm is %g", name, got, norm)
		}
	}
}

// TestFreeLogits are added to the network's, trained, saved and removed.
func TestFreeLogits(t *testing.T) {
	const n, f, a = 12, 6, 4
	net := newNetwork(t, small(f, a), 3, 1)
	b := &Batch{X: randomX(rand.New(rand.NewPCG(1, 2)), n, f), Neighbours: ladder(n)}
	plain, _ := forward(t, net, b)
	b.InstanceLogits = net.AddInstanceLogits("g", n)
	if b.InstanceLogits[0] != net.AddInstanceLogits("g", n)[0] {
		t.Error("instance logits of one name were made twice")
	}
	b.InstanceLogits[0].Value[5] = 2
	got, _ := forward(t, net, b)
	if d := got.V[5] - plain.V[5]; d < 1.99 || d > 2.01 || got.V[4] != plain.V[4] {
		t.Errorf("logit 5 moved by %g, want 2, and logit 4 by %g, want 0", d, got.V[4]-plain.V[4])
	}
	if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err != nil {
		t.Fatal(err)
	}
	if b.InstanceLogits[0].Grad[0] >= 0 {
		t.Errorf("gradient of the label's instance logit is %g, want below 0", b.InstanceLogits[0].Grad[0])
	}
	net.RemoveInstanceLogits("g")
	b.InstanceLogits = nil
	if again, _ := forward(t, net, b); !slices.Equal(again.V, plain.V) {
		t.Error("logits differ after instance logits were removed")
	}
}

func TestBatchRefuses(t *testing.T) {
	const n, f, a = 5, 6, 4
	good := func() *Batch { return &Batch{X: nn.NewMat(n, f), Neighbours: ladder(n)} }
	cases := []struct {
		name   string
		change func(b *Batch)
		want   string
	}{
		{"no rows", func(b *Batch) { b.X = nn.NewMat(0, f) }, "[0,6]"},
		{"other features", func(b *Batch) { b.X = nn.NewMat(n, f+1) }, "want [N,6]"},
		{"no neighbours", func(b *Batch) { b.Neighbours = nil }, "without neighbours"},
		{"neighbours of another graph", func(b *Batch) { b.Neighbours = ladder(n + 1) }, "starts for 5 nodes"},
		{"mask", func(b *Batch) { b.Allowed = make([]bool, 3) }, "mask has 3"},
		{"nothing allowed", func(b *Batch) { b.Allowed = make([]bool, a) }, "no choice"},
		{"copies", func(b *Batch) { b.Copies = 2 }, "one iteration"},
		{"free", func(b *Batch) { b.InstanceLogits = []*nn.Param{nn.NewParams().Constant("x", 0, n, a+1)} }, "instance logits [5 5]"},
	}
	net := newNetwork(t, small(f, a), 1, 1)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := good()
			c.change(b)
			if _, err := net.Forward(b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Forward: %v, want an error with %q", err, c.want)
			}
			if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err == nil {
				t.Error("Backward gave no error")
			}
		})
	}
	c := small(f, a)
	c.Iterations = 2
	two := newNetwork(t, c, 1, 1)
	b := good()
	b.Previous = []int32{0, 1, 2, 3, 4}
	if _, err := two.Forward(b); err == nil || !strings.Contains(err.Error(), "decision 4 is 4") {
		t.Errorf("Forward: %v, want an error naming decision 4", err)
	}
}

// TestGraphsAreCached: a shape is compiled once, and again when a training graph is needed.
func TestGraphsAreCached(t *testing.T) {
	net := newNetwork(t, small(6, 4), 1, 1)
	of := func(n int, train bool) *compiled {
		c, err := net.cached(&Batch{X: nn.NewMat(n, 6), Neighbours: ladder(n)}, train)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	five, six := of(5, false), of(6, false)
	if five == six || of(5, false) != five {
		t.Error("a shape was compiled twice, or two shapes as one")
	}
	trains := of(5, true)
	if trains == five || !trains.Trains() || of(5, false) != trains || of(6, false) != six {
		t.Error("the training graph of a shape did not take the place of the other")
	}
}
