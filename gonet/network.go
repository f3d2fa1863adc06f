package gonet

import (
	"fmt"
	"math/rand/v2"

	"placer/graphsage"
	"placer/nn"
	"placer/transformerxl"
)

// Network is a policy and its optimiser. It is not safe for concurrent use.
type Network struct {
	config   Config
	backend  *nn.Backend
	params   *nn.Params
	adam     *nn.Adam
	encoder  *graphsage.Encoder
	decision *transformerxl.Network
	state    *nn.Param // embedding of the decision before, [A,d]; nil with one iteration
	value    [2]*nn.Param
	valueB   [2]*nn.Param

	cache []*compiled // the most recently used last
}

// New returns a network with random weights.
func New(c Config, r *rand.Rand, b *nn.Backend) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ps, d := nn.NewParams(), c.Decision.Width
	n := &Network{config: c, backend: b, params: ps, adam: nn.NewAdam(c.Adam)}
	n.encoder = graphsage.New(c.Embedding, ps, r)
	n.decision = transformerxl.New(c.Decision, ps, r)
	if c.Iterations > 1 {
		n.state = ps.Normal("state.embedding", r, 0.1, c.Decision.Choices, d)
	}
	n.value = [2]*nn.Param{ps.Glorot("value.fc1.w", r, d, d), ps.Glorot("value.fc2.w", r, d, 1)}
	n.valueB = [2]*nn.Param{ps.Constant("value.fc1.b", 0, d), ps.Constant("value.fc2.b", 0, 1)}
	return n, nil
}

// Config returns the configuration.
func (n *Network) Config() Config { return n.config }

// Params returns the parameters. Their values may be read and changed between
// runs.
func (n *Network) Params() *nn.Params { return n.params }

// AddFree adds free logits, zero, for a problem of nodes nodes to the parameters
// under name, or returns those there are. They are trained with the network.
func (n *Network) AddFree(name string, nodes int) *nn.Param {
	name = "free/" + name
	if p := n.params.Lookup(name); p != nil {
		return p
	}
	return n.params.Constant(name, 0, nodes, n.config.Decision.Choices)
}

// RemoveFree deletes free logits.
func (n *Network) RemoveFree(name string) {
	name = "free/" + name
	p := n.params.Lookup(name)
	n.params.Remove(name)
	for i := 0; i < len(n.cache); {
		if p != nil && n.cache[i].free == p {
			n.cache = append(n.cache[:i], n.cache[i+1:]...)
			continue
		}
		i++
	}
}

// Output is the result of a run, valid until the network's next.
type Output struct {
	Logits nn.Mat    // [R,A]; forbidden choices hold nn.Masked
	Values []float32 // [Copies G]
}

// Forward computes logits and values.
func (n *Network) Forward(b *Batch) (Output, error) {
	if err := b.check(n.config); err != nil {
		return Output{}, err
	}
	c, err := n.compiled(b, false)
	if err != nil {
		return Output{}, err
	}
	c.set(b, n.config)
	if _, err := c.graph.Run(nil); err != nil {
		return Output{}, fmt.Errorf("gonet: %w", err)
	}
	o := c.output()
	for i, v := range o.Logits.V {
		if v-v != 0 { // an infinity or not a number
			return Output{}, fmt.Errorf("gonet: logit %d of node %d is %g: the weights have diverged", i%o.Logits.D, i/o.Logits.D, v)
		}
	}
	return o, nil
}

// Backward computes an objective over the logits, output 0, and values, output
// 1, and adds its gradient to the parameters'. It returns the loss.
func (n *Network) Backward(b *Batch, o nn.Objective) (float64, error) {
	if err := b.check(n.config); err != nil {
		return 0, err
	}
	c, err := n.compiled(b, true)
	if err != nil {
		return 0, err
	}
	c.set(b, n.config)
	loss, err := c.graph.Run(o)
	if err != nil {
		return 0, fmt.Errorf("gonet: %w", err)
	}
	return loss, nil
}

// Update takes an optimiser step along the gradients added up since the last,
// clears them, and returns their norm before clipping.
func (n *Network) Update(learningRate float64) (float64, error) {
	return n.adam.Step(n.params, learningRate)
}

// ResetOptimiser forgets the optimiser's state, as when fine-tuning begins.
func (n *Network) ResetOptimiser() { n.adam = nn.NewAdam(n.config.Adam) }
