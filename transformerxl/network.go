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
	head       head
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
	n.head = newHead(c, ps, r, "placement")
	return n
}

// Apply adds the network to g and returns the logits [R,A] and the last layer's
// states [R,d]. h [N,d] is the graph embedding; x [R,d] is what the first layer
// starts from: h itself, or R/N stacked copies of h, each with the decision
// before it added. The segments cut the rows of h and those of x; they are read
// at each run.
func (n *Network) Apply(g *nn.Graph, h, x *nn.Node, ofH, ofX *[]Segment) (logits, states *nn.Node) {
	var m *nn.Node
	if n.config.Modulation {
		m = n.modulation.apply(g, h, ofH)
	}
	for _, l := range n.layers {
		if m != nil {
			x = g.Mul(m, x)
		}
		x = l.apply(g, x, ofX)
	}
	return n.head.apply(g, x, ofX), x
}

// head is the recurrent attention layer of one task (GO, section 4.4): H =
// norm(x), A = FC(attention(H)), FC being affine, ReLU, affine. For the first
// task, placement, there is no action of an earlier task to concatenate.
type head struct {
	residual bool
	in       norm
	attend   *attend // nil: FC alone
	mid      norm
	fc1, fc2 affine
}

// outputScale makes the first policy nearly uniform.
const outputScale = 0.1

func newHead(c Config, ps *nn.Params, r *rand.Rand, name string) head {
	h := head{residual: c.HeadResidual, in: newNorm(ps, name+".norm", c.Width), attend: newAttend(c, ps, r, name+".attention")}
	if c.HeadResidual && c.Attention {
		h.mid = newNorm(ps, name+".residual", c.Width)
	}
	h.fc1 = newAffine(ps, r, name+".fc1", c.Width, c.Width)
	h.fc2 = newAffine(ps, r, name+".fc2", c.Width, c.Choices)
	for i := range h.fc2.w[0].Value {
		h.fc2.w[0].Value[i] *= outputScale
	}
	return h
}

func (h head) apply(g *nn.Graph, x *nn.Node, s *[]Segment) *nn.Node {
	x = h.in.apply(g, x)
	a := x
	if h.attend != nil {
		a = h.attend.apply(g, x, s)
		if h.residual {
			a = h.mid.apply(g, x, a)
		}
	}
	return h.fc2.apply(g, nn.Identity, h.fc1.apply(g, nn.Relu, a))
}
