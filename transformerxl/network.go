package transformerxl

import (
	"fmt"
	"math/rand/v2"

	"placer/nn"
)

// Network holds the parameters of the decision network.
type Network struct {
	config     Config
	modulation layer
	layers     []layer
	attend     *attend // of all tasks
	heads      []head
}

// New adds the parameters of a network to ps, with random weights. It panics if c
// is not valid.
func New(c Config, ps *nn.Params, r *rand.Rand) *Network {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	n := &Network{config: c}
	if c.Modulation {
		n.modulation = newLayer(c, ps, r, "modulation")
	}
	for l := range c.Layers {
		n.layers = append(n.layers, newLayer(c, ps, r, fmt.Sprintf("layer.%d", l)))
	}
	n.addHeads(ps, r)
	return n
}

// Apply adds the network to g and returns the logits of each task, [R,Columns],
// and the last layer's states [R,d]. h [N,d] is the graph embedding; x [R,d] is what the first layer
// starts from: h itself, or R/N stacked copies of h, each with the decision
// before it added. The segments cut the rows of h and those of x; they are read
// at each run.
func (n *Network) Apply(g *nn.Graph, h, x *nn.Node, ofH, ofX *[]Segment) (logits []*nn.Node, states *nn.Node) {
	var m *nn.Node
	if n.config.Modulation {
		m = n.modulation.apply(g, h, nil, ofH)
	}
	for _, l := range n.layers {
		var dense *nn.Node
		switch {
		case n.config.ModulateDense:
			dense = m
		case m != nil:
			x = g.Mul(m, x)
		}
		x = l.apply(g, x, dense, ofX)
	}
	return n.decide(g, x, ofX), x
}
