package gonet

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graphsage"
	"placer/nn"
	"placer/nn/blas"
	"placer/ppo"
)

// chainLists connects each node with the ones before and after it.
func chainLists(n int) *graphsage.Neighbours {
	l := &graphsage.Neighbours{Start: []int32{0}}
	for v := range int32(n) {
		if v > 0 {
			l.Index = append(l.Index, v-1)
		}
		if int(v) < n-1 {
			l.Index = append(l.Index, v+1)
		}
		l.Start = append(l.Start, int32(len(l.Index)))
	}
	return l
}

// ladder gives every node up to five neighbours near it.
func ladder(n int) *graphsage.Neighbours {
	l := &graphsage.Neighbours{Start: []int32{0}}
	for v := range n {
		for _, d := range []int{-7, -2, -1, 1, 13} {
			if u := v + d; u >= 0 && u < n {
				l.Index = append(l.Index, int32(u))
			}
		}
		l.Start = append(l.Start, int32(len(l.Index)))
	}
	return l
}

func small(features, choices int) Config {
	c := Default(features, choices)
	c.Embedding.Width, c.Embedding.Layers = 32, 2
	c.Decision.Width, c.Decision.Heads, c.Decision.HeadWidth, c.Decision.Inner = 32, 2, 16, 64
	c.Decision.Segment, c.Decision.Memory = 32, 32
	return c
}

func randomX(r *rand.Rand, n, f int) nn.Mat {
	x := nn.NewMat(n, f)
	for i := range x.V {
		x.V[i] = float32(r.NormFloat64())
	}
	return x
}

func backend(t testing.TB, workers int) *nn.Backend {
	t.Helper()
	c := nn.Default()
	c.Workers = workers
	b, err := nn.NewBackend(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newNetwork(t testing.TB, c Config, seed uint64, workers int) *Network {
	t.Helper()
	n, err := New(c, rand.New(rand.NewPCG(seed, 0)), backend(t, workers))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestImitation: a target that needs a choice per node must be learnt.
func TestImitation(t *testing.T) {
	const n, f, a = 200, 8, 4
	r := rand.New(rand.NewPCG(5, 6))
	x := randomX(r, n, f)
	labels := make([]int32, n)
	for i := range labels {
		for k := 1; k < a; k++ {
			if x.Row(i)[k] > x.Row(i)[labels[i]] {
				labels[i] = int32(k)
			}
		}
	}
	net := newNetwork(t, small(f, a), 1, 1)
	b := &Batch{X: x, Neighbours: chainLists(n)}
	o := &nn.CrossEntropy{Labels: labels}
	for i := range 300 {
		if _, err := net.Backward(b, o); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Update(1e-3 * min(1, float64(i+1)/20)); err != nil {
			t.Fatal(err)
		}
	}
	if acc := float64(o.Right) / n; acc < 0.95 {
		t.Errorf("accuracy %.3f after 300 steps, want above 0.95", acc)
	}
}

// bandit rewards choosing node index mod 3.
type bandit struct{}

func (bandit) Rewards(actions [][]int32, rewards []float32) error {
	for k, a := range actions {
		hit := 0
		for i, c := range a {
			if int(c) == i%3 {
				hit++
			}
		}
		rewards[k] = float32(hit) / float32(len(a))
	}
	return nil
}

func TestBandit(t *testing.T) {
	for _, iterations := range []int{1, 2} {
		const n, f, a = 24, 6, 3
		c := small(f, a)
		c.Iterations = iterations
		net := newNetwork(t, c, 2, 1)
		x := nn.NewMat(n, f)
		for i := range n {
			x.Row(i)[i%3] = 1
			x.Row(i)[3] = float32(i) / n
		}
		pc := ppo.Default()
		pc.Entropy, pc.Iterations = 0.003, iterations
		tr := ppo.NewTrainer(pc, bandit{}, net.On(&Batch{X: x, Neighbours: chainLists(n)}), rand.New(rand.NewPCG(7, 8)))
		var first, last float32
		for i := range 60 {
			round, err := tr.Round(func(int) float64 { return 1e-3 })
			if err != nil {
				t.Fatal(err)
			}
			m := mean(round.Rewards)
			if i == 0 {
				first = m
			}
			last = m
		}
		if last < first+0.3 {
			t.Errorf("T=%d: mean reward from %.2f to %.2f, want a gain of 0.3", iterations, first, last)
		}
	}
}

func mean(x []float32) (m float32) {
	for _, v := range x {
		m += v / float32(len(x))
	}
	return m
}

// TestWorkersDoNotChangeResults: the same bits with one worker and with three, for
// each matrix product, and after a round through a checkpoint.
func TestWorkersDoNotChangeResults(t *testing.T) {
	products := []blas.Gemm{blas.InGo()}
	if l, err := blas.Open(); err == nil {
		products = append(products, l)
	} else {
		t.Logf("without a BLAS library: %v", err)
	}
	for _, p := range products {
		t.Run(p.Name(), func(t *testing.T) {
			one, three := trainedFile(t, p, 1), trainedFile(t, p, 3)
			if !bytes.Equal(one, three) {
				t.Error("one worker and three gave different weights")
			}
			net, extra, err := Load(bytes.NewReader(one), backend(t, 1))
			if err != nil {
				t.Fatal(err)
			}
			var w bytes.Buffer
			if err := net.Save(&w, extra); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(w.Bytes(), one) || extra["step"] != "3" {
				t.Error("a loaded network saves other bytes")
			}
		})
	}
}

// trainedFile returns the checkpoint of a small network after three steps.
func trainedFile(t *testing.T, p blas.Gemm, workers int) []byte {
	t.Helper()
	const n, f, a = 700, 8, 4
	r := rand.New(rand.NewPCG(5, 6))
	b := &Batch{X: randomX(r, n, f), Neighbours: chainLists(n)}
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(r.IntN(a))
	}
	be, err := nn.NewBackend(nn.Config{Product: p, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	net, err := New(small(f, a), rand.New(rand.NewPCG(1, 0)), be)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := net.Backward(b, &nn.CrossEntropy{Labels: labels}); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Update(1e-3); err != nil {
			t.Fatal(err)
		}
	}
	var w bytes.Buffer
	if err := net.Save(&w, map[string]string{"step": "3"}); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// TestForwardOnBothGraphs: the forward pass gives the same bits on a graph
// compiled for training.
func TestForwardOnBothGraphs(t *testing.T) {
	const n, f, a = 100, 8, 4
	b := &Batch{X: randomX(rand.New(rand.NewPCG(1, 1)), n, f), Neighbours: chainLists(n)}
	net := newNetwork(t, small(f, a), 1, 1)
	o1, err := net.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	first := o1.Logits.Clone()
	if _, err := net.Backward(b, &nn.CrossEntropy{Labels: make([]int32, n)}); err != nil {
		t.Fatal(err)
	}
	o2, err := net.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.V, o2.Logits.V) {
		t.Error("logits differ between a forward graph and a training graph")
	}
}
