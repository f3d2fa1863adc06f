package gnn

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"placer/baselines/regal/regaltest"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/nn"
)

// naive computes the logits of ops as the paper writes the network: every message
// through both layers of its MLP, then summed.
type naive struct {
	ps *nn.Params
	g  *multigraph
	c  Config
}

// linear returns Σ x_i w_i + b.
func (n naive) linear(b string, ws []string, xs ...[]float64) []float64 {
	bias := n.ps.Lookup(b)
	out := make([]float64, len(bias.Value))
	for j := range out {
		out[j] = float64(bias.Value[j])
		for i, x := range xs {
			w := n.ps.Lookup(ws[i])
			for k, v := range x {
				out[j] += v * float64(w.Value[k*len(out)+j])
			}
		}
	}
	return out
}

func (n naive) mlp(name string, active bool, xs ...[]float64) []float64 {
	open := func(x []float64) []float64 {
		for i := range x {
			x[i] = max(x[i], 0)
		}
		return x
	}
	h := open(n.linear(name+".b", []string{name + ".w0", name + ".w1", name + ".w2"}, xs...))
	out := n.linear(name+".c", []string{name + ".u"}, h)
	if active {
		return open(out)
	}
	return out
}

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

func (n naive) states(name string) [][]float64 {
	count, f := n.g.ops.N, n.g.ops.F
	h := make([][]float64, count)
	for i := range h {
		h[i] = n.mlp(name+".op", true, wide(n.g.ops.V[i*f:i*f+f]))
	}
	for range n.c.Rounds {
		sum := make([][]float64, count)
		for v := range sum {
			sum[v] = make([]float64, n.c.Width)
			for k, way := range []string{"ahead", "back"} {
				ends := n.g.to
				if k == 1 {
					ends = n.g.from
				}
				degree := 0.0
				for _, end := range ends {
					if int(end) == v {
						degree++
					}
				}
				if !n.c.Mean {
					degree = 1
				}
				for e, end := range ends {
					if int(end) != v {
						continue
					}
					edge := n.mlp(name+".edge", true, wide(n.g.edges[e*EdgeFeatures:e*EdgeFeatures+EdgeFeatures]))
					for j, m := range n.mlp(name+".message."+way, false, h[n.g.from[e]], h[n.g.to[e]], edge) {
						sum[v][j] += m / degree
					}
				}
			}
		}
		next := make([][]float64, count)
		for v := range next {
			switch {
			case n.c.GRU:
				x := n.linear(name+".gru.xb", []string{name + ".gru.x"}, sum[v])
				y := n.linear(name+".gru.yb", []string{name + ".gru.y"}, h[v])
				w := n.c.Width
				for j := range w {
					r, u := 1/(1+math.Exp(-x[j]-y[j])), 1/(1+math.Exp(-x[w+j]-y[w+j]))
					next[v] = append(next[v], (1-u)*math.Tanh(x[2*w+j]+r*y[2*w+j])+u*h[v][j])
				}
			case n.c.Residual:
				next[v] = n.mlp(name+".node", false, h[v], sum[v])
				for j := range next[v] {
					next[v][j] += h[v][j]
				}
			default:
				next[v] = n.mlp(name+".node", true, h[v], sum[v])
			}
		}
		h = next
	}
	return h
}

// Logits and baseline of every agent are those of the paper's definition, also in
// a compiled network that has read another graph before.
func TestNetwork(t *testing.T) {
	s := synth.Default()
	s.MinOps, s.MaxOps = 20, 30
	problem := func(k uint64) *sched.Problem { return s.Generate(rand.New(rand.NewPCG(5, k))) }
	for name, c := range map[string]Config{"memory": peakMemory(), "time": runTime(), "synthetic": synthetic(), "deep": deep()} {
		c.Width, c.Rounds = 8, 3
		p := tiny(t, c)
		for k := range uint64(2) {
			g := readGraph(context.Background(), problem(k), sched.RunTime, rand.New(rand.NewPCG(1, k)))
			x, err := p.compile(g, k == 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.graph.Run(nil); err != nil {
				t.Fatal(err)
			}
			n := naive{p.params, g, c}
			for i, h := range n.states("policy") {
				for j, want := range n.mlp("act", false, h) {
					if got := float64(x.graph.Output(0).Row(i)[j]); math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
						t.Fatalf("%s, graph %d: logit %d of op %d is %g, want %g", name, k, j, i, got, want)
					}
				}
			}
			mean := make([]float64, c.Width)
			for _, h := range n.states("baseline") {
				for j, v := range n.mlp("baseline.pool", true, h) {
					mean[j] += v / float64(g.ops.N)
				}
			}
			if got, want := float64(x.graph.Output(1).V[0]), n.mlp("baseline.value", false, mean)[0]; math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
				t.Errorf("%s: b(G) is %g, want %g", name, got, want)
			}
		}
	}
}

func tiny(t *testing.T, c Config) *Policy {
	t.Helper()
	p, err := New(c, regaltest.Backend(t), rand.New(rand.NewPCG(3, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The gradient of the whole loss - policy, elite bias, baseline - by differences,
// for weights of each part.
func TestLossGradient(t *testing.T) {
	s := synth.Default()
	s.MinOps, s.MaxOps = 8, 10
	q := s.Generate(rand.New(rand.NewPCG(5, 9)))
	c := synthetic()
	c.Width, c.Crossover = 6, 3
	p := tiny(t, c)
	g := readGraph(context.Background(), q, sched.RunTime, rand.New(rand.NewPCG(1, 9)))
	jobs := []job{{problem: q, graph: g, cost: []float64{0.5, 1.7}, uniform: 1}}
	if err := p.draw(jobs, 2, func(int) *rand.Rand { return rand.New(rand.NewPCG(1, 3)) }); err != nil {
		t.Fatal(err)
	}
	config := Short()
	config.BaselineWeight, config.Entropy = 0.7, 0.1
	run := func() float64 {
		x, err := p.compile(g, true)
		if err != nil {
			t.Fatal(err)
		}
		v, err := x.graph.Run(&loss{job: &jobs[0], policy: p, training: config, share: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	p.params.ZeroGrad()
	run()
	grad := map[string]float64{}
	for _, w := range p.params.All() {
		grad[w.Name] = float64(w.Grad[0])
	}
	moved := 0
	for _, w := range p.params.All() {
		const h = 3e-3
		x := w.Value[0]
		w.Value[0] = x + h
		up := run()
		w.Value[0] = x - h
		down := run()
		w.Value[0] = x
		want := (up - down) / (2 * h)
		if math.Abs(grad[w.Name]-want) > 2e-3*max(1, math.Abs(want)) {
			t.Errorf("%s: gradient %g, by differences %g", w.Name, grad[w.Name], want)
		}
		if math.Abs(want) > 1e-4 {
			moved++
		}
	}
	if moved < 20 {
		t.Errorf("only %d of %d weights matter", moved, len(p.params.All()))
	}
}
