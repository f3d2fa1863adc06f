// Package gas owns REGAL's baseline GAS, graph as sequence (Paliwal et al., ICLR
// 2020, 5.2): a recurrent network reads the ops in topological order and proposes
// beta distributions for each, trained by REINFORCE like REGAL's own policy. What
// it lacks is the graph.
//
// Departures: the advantage is the reward less the mean of the other samples of
// the same graph instead of a learned baseline, and the learning rate is larger,
// because we train for minutes on one core where the paper trained for days on
// ten.
//
// Letters: N ops, T rows (N padded), F features, H width.
package gas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/nn"
)

// Config describes the network.
type Config struct {
	Devices int
	Width   int // H
}

// Default returns two devices and the paper's width of 32.
func Default() Config { return Config{Devices: 2, Width: 32} }

// Policy is the network with its parameters. Its methods may be called from many
// goroutines, one at a time inside.
type Policy struct {
	config  Config
	space   propose.Space
	params  *nn.Params
	backend *nn.Backend

	mu     sync.Mutex
	graphs map[int]*compiled // by T and whether it trains, at most mostCompiled
}

// mostCompiled bounds the compiled graphs that are kept: each has room for all activations.
const mostCompiled = 32

type compiled struct {
	graph *nn.Graph
	input *nn.Node
}

// New returns a policy with random weights.
func New(c Config, b *nn.Backend, r *rand.Rand) (*Policy, error) {
	if c.Devices < 1 || c.Devices > sched.MaxDevices || c.Width < 1 {
		return nil, fmt.Errorf("gas: %d devices, width %d", c.Devices, c.Width)
	}
	p := &Policy{config: c, space: propose.RunTime(c.Devices), params: nn.NewParams(), backend: b, graphs: map[int]*compiled{}}
	h, f := c.Width, len(propose.FeatureNames(c.Devices))
	p.params.Glorot("embed.w", r, f, h)
	p.params.Constant("embed.b", 0, h)
	p.params.Glorot("lstm.x", r, h, 4*h)
	p.params.Constant("lstm.b", 0, 4*h)
	p.params.Glorot("lstm.h", r, h, 4*h)
	p.params.Normal("head.w", r, 0.01, h, p.space.Columns())
	p.params.Normal("head.skip", r, 0.01, h, p.space.Columns())
	p.params.Constant("head.b", 0, p.space.Columns())
	return p, nil
}

// Params returns the weights, for checkpoints.
func (p *Policy) Params() *nn.Params { return p.params }

// compile returns the graph for t rows.
func (p *Policy) compile(t int, train bool) (*compiled, error) {
	key := 2 * t
	if train {
		key++
	}
	if c := p.graphs[key]; c != nil {
		return c, nil
	}
	w := p.params.Lookup
	g := nn.NewGraph(p.backend)
	x := g.Input("ops", t, len(propose.FeatureNames(p.config.Devices)))
	e := g.Linear(nn.Relu, []*nn.Node{x}, []*nn.Param{w("embed.w")}, w("embed.b"))
	z := g.Linear(nn.Identity, []*nn.Node{e}, []*nn.Param{w("lstm.x")}, w("lstm.b"))
	h := g.LSTM(z, w("lstm.h"), 1, false)
	logits := g.Linear(nn.Identity, []*nn.Node{h, e}, []*nn.Param{w("head.w"), w("head.skip")}, w("head.b"))
	if err := g.Compile(train, logits); err != nil {
		return nil, err
	}
	if len(p.graphs) >= mostCompiled {
		clear(p.graphs)
	}
	c := &compiled{g, x}
	p.graphs[key] = c
	return c, nil
}

// sequence returns the features in topological order, [T,F], T a multiple of 32:
// rows behind the ops are zero, and the network reads forward only.
func sequence(p *sched.Problem, t *propose.Features) nn.Mat {
	m := nn.NewMat((t.N+31)/32*32, t.F)
	for k, i := range p.Order() {
		copy(m.Row(k), t.V[int(i)*t.F:int(i+1)*t.F])
	}
	return m
}

// toOps puts decisions made in topological order into the problem's numbering.
func (p *Policy) toOps(q *sched.Problem, decisions []uint8) []uint8 {
	per := p.space.Decisions()
	all := make([]uint8, len(decisions))
	for k, i := range q.Order() {
		copy(all[int(i)*per:], decisions[k*per:(k+1)*per])
	}
	return all
}

// Propose implements propose.Proposer: features from 400 evaluations, one sample
// of the policy. It serves the run-time task that it was trained for and others
// alike.
func (p *Policy) Propose(ctx context.Context, q *sched.Problem, o sched.Objective, r *rand.Rand) (*propose.Proposal, error) {
	if q.D() != p.config.Devices {
		return nil, fmt.Errorf("gas: %d devices, the policy knows %d", q.D(), p.config.Devices)
	}
	pin := propose.Heaviest(q, o)
	t := propose.NewFeatures(ctx, q, o, pin, propose.FeatureEvaluations, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	x := sequence(q, t)
	c, err := p.compile(x.N, false)
	if err != nil {
		return nil, err
	}
	c.graph.SetInput(c.input, x)
	if _, err := c.graph.Run(nil); err != nil {
		return nil, err
	}
	decisions, err := p.space.Sample(c.graph.Output(0), q.N(), r)
	if err != nil {
		return nil, err
	}
	return &propose.Proposal{Distributions: p.space.Distributions(p.toOps(q, decisions)), Pin: pin, Evaluations: t.Evaluations}, nil
}
