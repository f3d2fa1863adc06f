package gonet

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	states   []*nn.Param // of each task: embedding of the decision before, [Columns,d]; none with one iteration
	value    [2]nn.Affine

	cache nn.Cache[*compiled]
}

// New returns a network with random weights.
func New(c Config, r *rand.Rand, b *nn.Backend) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return build(c, nn.NewParams(), r, b), nil
}

// build adds the network's weights to ps.
func build(c Config, ps *nn.Params, r *rand.Rand, b *nn.Backend) *Network {
	d := c.Decision.Width
	n := &Network{config: c, backend: b, params: ps, adam: nn.NewAdam(c.Adam).On(b), cache: nn.Cache[*compiled]{Most: c.CachedGraphs}}
	n.encoder = graphsage.New(c.Embedding, ps, r)
	n.decision = transformerxl.New(c.Decision, ps, r)
	n.addStates(r)
	// Both weights, then both biases: in this order they are in files and in the gradient's norm.
	w1, w2 := ps.Glorot("value.fc1.w", r, d, d), ps.Glorot("value.fc2.w", r, d, 1)
	n.value = [2]nn.Affine{
		{W: []*nn.Param{w1}, B: ps.Constant("value.fc1.b", 0, d)},
		{W: []*nn.Param{w2}, B: ps.Constant("value.fc2.b", 0, 1)},
	}
	return n
}

// Config returns the configuration.
func (n *Network) Config() Config { return n.config }

// Params returns the parameters. Their values may be read and changed until the
// next run; with a device, call Params again after it. Params panics if a device
// fails.
func (n *Network) Params() *nn.Params {
	if err := n.fetch(); err != nil {
		panic(err)
	}
	return n.params
}

// fetch brings the parameters to the host.
func (n *Network) fetch() error {
	if d := n.backend.Device(); d != nil {
		return d.Fetch(n.params.All())
	}
	return nil
}

// Close frees what the network holds on a device.
func (n *Network) Close() error {
	n.cache.Forget(func(*compiled) bool { return true })
	if d := n.backend.Device(); d != nil {
		return d.Release(n.params.All())
	}
	return nil
}

// addStates adds the embeddings of the decision before.
func (n *Network) addStates(r *rand.Rand) {
	if n.config.Iterations == 1 {
		return
	}
	for i, t := range n.config.Decision.Tasks() {
		name := "state.embedding"
		if i > 0 {
			name = "state." + t.Name
		}
		n.states = append(n.states, n.params.Normal(name, r, 0.1, t.Columns(), n.config.Decision.Width))
	}
}

// AddInstanceLogits adds instance logits, zero, for a problem of nodes nodes to the parameters
// under name, or returns those there are: one matrix [nodes,Columns] per task.
// They are trained with the network.
func (n *Network) AddInstanceLogits(name string, nodes int) (all []*nn.Param) {
	for i, t := range n.config.Decision.Tasks() {
		key := instanceName(name, i, t)
		p := n.params.Lookup(key)
		if p == nil {
			p = n.params.Constant(key, 0, nodes, t.Columns())
		}
		all = append(all, p)
	}
	return all
}

// instancePrefix begins the names of instance logits, as checkpoints of runs have them.
const instancePrefix = "free/"

func instanceName(name string, i int, t transformerxl.Task) string {
	if i == 0 {
		return instancePrefix + name
	}
	return instancePrefix + name + "/" + t.Name
}

// RemoveInstanceLogits deletes instance logits.
func (n *Network) RemoveInstanceLogits(name string) {
	var gone []*nn.Param
	for i, t := range n.config.Decision.Tasks() {
		key := instanceName(name, i, t)
		gone = append(gone, n.params.Lookup(key))
		n.params.Remove(key)
	}
	n.adam.Forget(gone...)
	n.cache.Forget(func(c *compiled) bool { return c.instance != nil && slices.Equal(c.instance, gone) })
	if d := n.backend.Device(); d != nil {
		_ = d.Release(gone) // a device that cannot free has said so before
	}
}

// Output is the result of a run, valid until the network's next.
type Output struct {
	// Logits are those of the first task, placement unless it is not decided:
	// [R,A]; forbidden devices hold nn.Masked.
	Logits nn.Mat
	// Tasks are the logits of every task in order, [R Kinds,Levels]; the first are
	// Logits.
	Tasks  []nn.Mat
	Values []float32 // [Copies]
}

// Forward computes logits and values.
func (n *Network) Forward(b *Batch) (Output, error) {
	c, err := n.prepare(b, false)
	if err != nil {
		return Output{}, err
	}
	if _, err := c.Run(nil); err != nil {
		return Output{}, fmt.Errorf("gonet: %w", err)
	}
	o := c.output()
	for _, x := range o.Tasks {
		for i, v := range x.V {
			if v-v != 0 { // an infinity or not a number
				return Output{}, fmt.Errorf("gonet: logit %d of row %d is %g: the weights have diverged", i%x.D, i/x.D, v)
			}
		}
	}
	return o, nil
}

// Backward computes an objective over the first task's logits, output 0, the values,
// output 1, and the logits of further tasks, outputs 2 and on, and adds its gradient to
// the parameters'. It returns the loss.
func (n *Network) Backward(b *Batch, o nn.Objective) (float64, error) {
	c, err := n.prepare(b, true)
	if err != nil {
		return 0, err
	}
	loss, err := c.Run(o)
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
