package gnn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/nn"
	"placer/nn/vec"
)

// Policy is the network with its parameters, and the baseline b(G) with its own.
// Its methods may be called from many goroutines, one at a time inside.
type Policy struct {
	config       Config
	params       *nn.Params
	backend      *nn.Backend
	policy, base *network
	act          mlp
	bias         mlp // learned elite bias, if any
	perOp, value mlp // MLP_g and MLP_b of the baseline

	mu     sync.Mutex
	graphs map[shape]*compiled // at most mostCompiled
}

// mostCompiled bounds the compiled graphs that are kept: each has room for all activations.
const mostCompiled = 32

// shape of a compiled network's inputs.
type shape struct {
	ops, edges int
	train      bool
}

// compiled is the network for one shape. Outputs are the logits of ops [N,C], the
// baseline [2,1], of which row 1 belongs to the padding, and with a learned elite
// bias its logits [2,k].
type compiled struct {
	graph      *nn.Graph
	ops, edges *nn.Node
	degree     [2]*nn.Node
	links      links
	bounds     []int32 // ops, padding
}

// New returns a policy with random weights.
func New(c Config, b *nn.Backend, r *rand.Rand) (*Policy, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return build(c, nn.NewParams(), b, r), nil
}

// build adds the policy's weights to ps.
func build(c Config, ps *nn.Params, b *nn.Backend, r *rand.Rand) *Policy {
	p := &Policy{config: c, params: ps, backend: b, graphs: map[shape]*compiled{}}
	h := c.Width
	p.policy = newNetwork(c, ps, r, "policy")
	p.act = newMLP(ps, r, "act", h, c.Actions.Columns(), h)
	vec.Scale(p.act.u.Value, 0.1) // near equal chances at first
	if c.Crossover > 0 {
		p.bias = newMLP(ps, r, "bias", h, c.Crossover, h)
	}
	p.base = newNetwork(c, ps, r, "baseline")
	p.perOp = newMLP(ps, r, "baseline.pool", h, h, h)
	p.value = newMLP(ps, r, "baseline.value", h, 1, h)
	return p
}

// Config returns the policy's configuration.
func (p *Policy) Config() Config { return p.config }

func round(n, to int) int { return (n + to - 1) / to * to }

// compile returns the network for g, with g as its input.
func (p *Policy) compile(g *multigraph, train bool) (*compiled, error) {
	s := shape{round(g.ops.N, 32), round(max(len(g.from), 1), 256), train}
	c := p.graphs[s]
	if c == nil {
		c = &compiled{graph: nn.NewGraph(p.backend)}
		x := c.graph
		c.ops, c.edges = x.Input("ops", s.ops, len(propose.FeatureNames(p.config.Actions.Devices))), x.Input("edges", s.edges, EdgeFeatures)
		c.degree = [2]*nn.Node{x.Input("in", s.ops, 1), x.Input("out", s.ops, 1)}
		h := p.policy.states(x, c.ops, c.edges, c.degree, &c.links)
		b := p.base.states(x, c.ops, c.edges, c.degree, &c.links)
		outputs := []*nn.Node{p.act.apply(x, nn.Identity, h)}
		mean := x.MeanRows(p.perOp.apply(x, nn.Relu, b), 2, &c.bounds, false)
		outputs = append(outputs, p.value.apply(x, nn.Identity, mean))
		if p.config.Crossover > 0 {
			outputs = append(outputs, p.bias.apply(x, nn.Identity, x.MeanRows(h, 2, &c.bounds, false)))
		}
		if err := x.Compile(train, outputs...); err != nil {
			return nil, err
		}
		if len(p.graphs) >= mostCompiled {
			clear(p.graphs)
		}
		p.graphs[s] = c
	}
	c.set(g, p.config.Mean)
	return c, nil
}

// set gives the network g to read.
func (c *compiled) set(g *multigraph, mean bool) {
	input := func(x *nn.Node, v []float32) {
		m := nn.NewMat(x.Shape()[0], x.Shape()[1])
		copy(m.V, v)
		c.graph.SetInput(x, m)
	}
	input(c.ops, g.ops.V)
	input(c.edges, g.edges)
	for k, ends := range [2][]int32{g.to, g.from} {
		degree := make([]float32, g.ops.N)
		for _, v := range ends {
			if degree[v]++; mean {
				degree[v] = 1
			}
		}
		input(c.degree[k], degree)
	}
	c.links = links{g.from, g.to}
	c.bounds = []int32{0, int32(g.ops.N), int32(c.ops.Shape()[0])}
}

// sample is one choice of all actions of a graph.
type sample struct {
	decisions []uint8 // [N*2(D+1)]
	crossover int     // level of the elite bias, if it is learned
}

// chances are the probabilities of a graph's actions.
type chances struct {
	ops  *propose.Chances
	bias []float64 // of the levels of the elite bias, if it is learned
}

// chances reads the network's last outputs; of likeliest actions it is all but
// certain.
func (p *Policy) chances(c *compiled, n int, likeliest bool) *chances {
	read := func(k int) nn.Mat {
		m := c.graph.Output(k)
		if likeliest {
			return sharpened(m)
		}
		return m
	}
	x := &chances{ops: p.config.Actions.Chances(read(0), n)}
	if k := p.config.Crossover; k > 0 {
		x.bias = make([]float64, k)
		nn.SoftmaxRow(x.bias, read(2).Row(0))
	}
	return x
}

// draw samples all actions.
func (x *chances) draw(r *rand.Rand) (s sample, err error) {
	if s.decisions, err = x.ops.Draw(r); err != nil || len(x.bias) == 0 {
		return s, err
	}
	if s.crossover = int(nn.Draw(x.bias, r)); s.crossover < 0 {
		return s, errors.New("gnn: the logits of the elite bias are not finite")
	}
	return s, nil
}

// sharpened returns logits whose softmax is all but certain.
func sharpened(m nn.Mat) nn.Mat {
	m = m.Clone()
	for i := range m.V {
		m.V[i] *= 1e6
	}
	return m
}

// proposal returns how to search with the actions of s.
func (p *Policy) proposal(s sample, pin int32) *propose.Proposal {
	x := &propose.Proposal{Distributions: p.config.Actions.Distributions(s.decisions), Pin: pin}
	if p.config.Crossover > 0 {
		x.EliteBias = brkga.QuantisedBias(s.crossover, p.config.Crossover)
	}
	return x
}

// Propose implements propose.Proposer: features from 400 evaluations, one sample
// of the policy.
func (p *Policy) Propose(ctx context.Context, q *sched.Problem, o sched.Objective, r *rand.Rand) (*propose.Proposal, error) {
	if q.D() != p.config.Actions.Devices {
		return nil, fmt.Errorf("gnn: %d devices, the policy knows %d", q.D(), p.config.Actions.Devices)
	}
	g := readGraph(ctx, q, o, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.compile(g, false)
	if err != nil {
		return nil, err
	}
	if _, err := c.graph.Run(nil); err != nil {
		return nil, err
	}
	s, err := p.chances(c, g.ops.N, p.config.Likeliest).draw(r)
	if err != nil {
		return nil, err
	}
	x := p.proposal(s, g.pin)
	x.Evaluations = g.ops.Evaluations
	return x, nil
}
