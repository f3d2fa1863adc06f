package gnn

import (
	"math/rand/v2"
	"strconv"

	"placer/baselines/regal/propose"
	"placer/nn"
	"placer/nn/vec"
)

// mlp is a hidden layer of rectifiers and a linear layer. Several inputs stand
// for one concatenated input.
type mlp struct {
	w       []*nn.Param // of each input, [Di,H]
	b, u, c *nn.Param   // [H], [H,O], [O]
}

// newMLP adds the weights of an MLP with the inputs' widths and out columns.
func newMLP(ps *nn.Params, r *rand.Rand, name string, h, out int, inputs ...int) (x mlp) {
	for i, d := range inputs {
		x.w = append(x.w, ps.Glorot(name+".w"+strconv.Itoa(i), r, d, h))
	}
	x.b = ps.Constant(name+".b", 0, h)
	x.u = ps.Glorot(name+".u", r, h, out)
	x.c = ps.Constant(name+".c", 0, out)
	return x
}

func (x mlp) apply(g *nn.Graph, a nn.Activation, in ...*nn.Node) *nn.Node {
	hidden := g.Linear(nn.Relu, in, x.w, x.b)
	return g.Linear(a, []*nn.Node{hidden}, []*nn.Param{x.u}, x.c)
}

// network holds the weights that make states of ops; policy and baseline have one
// each.
type network struct {
	config    Config
	op, edge  mlp
	message   [2]mlp // along edges, and back
	node      mlp
	x, xb     *nn.Param // GRU: of the messages, [H,3H]
	y, yb     *nn.Param // GRU: of the state, [H,3H]
	direction [2]string
}

func newNetwork(c Config, ps *nn.Params, r *rand.Rand, name string) *network {
	h := c.Width
	n := &network{config: c, direction: [2]string{"ahead", "back"}}
	n.op = newMLP(ps, r, name+".op", h, h, len(propose.FeatureNames(c.Actions.Devices)))
	n.edge = newMLP(ps, r, name+".edge", h, h, EdgeFeatures)
	for k, way := range n.direction {
		n.message[k] = newMLP(ps, r, name+".message."+way, h, h, h, h, h)
	}
	if c.GRU {
		n.x, n.xb = ps.Glorot(name+".gru.x", r, h, 3*h), ps.Constant(name+".gru.xb", 0, 3*h)
		n.y, n.yb = ps.Glorot(name+".gru.y", r, h, 3*h), ps.Constant(name+".gru.yb", 0, 3*h)
	} else {
		n.node = newMLP(ps, r, name+".node", h, h, h, h)
		if c.Residual { // else what the rounds add grows with every one
			vec.Scale(n.node.u.Value, 1/float32(c.Rounds))
		}
	}
	return n
}

// states returns the ops' states after all rounds, [N,H].
func (n *network) states(g *nn.Graph, ops, edges *nn.Node, degree [2]*nn.Node, l *links) *nn.Node {
	h := n.op.apply(g, nn.Relu, ops)
	e := n.edge.apply(g, nn.Relu, edges)
	rows, width := ops.Shape()[0], n.config.Width
	var ofEdge [2]*nn.Node // what an edge adds to its messages in every round
	for k, m := range n.message {
		ofEdge[k] = g.Linear(nn.Identity, []*nn.Node{e}, m.w[2:], m.b)
	}
	for range n.config.Rounds {
		var sums []*nn.Node
		for k, m := range n.message {
			from := product(g, h, m.w[0])
			to := product(g, h, m.w[1])
			sums = append(sums, g.Apply("messages", &messages{links: l, back: k == 1, mean: n.config.Mean}, rows, width, from, to, ofEdge[k]))
		}
		// The second layers of both MLPs: a sum of messages has as many biases as
		// messages.
		sum := g.Apply("products", products{}, rows, width,
			sums[0], g.Param(n.message[0].u), degree[0], g.Param(n.message[0].c),
			sums[1], g.Param(n.message[1].u), degree[1], g.Param(n.message[1].c))
		switch {
		case n.config.GRU:
			x := g.Linear(nn.Identity, []*nn.Node{sum}, []*nn.Param{n.x}, n.xb)
			y := g.Linear(nn.Identity, []*nn.Node{h}, []*nn.Param{n.y}, n.yb)
			h = g.Apply("gru", &gru{}, rows, width, x, y, h)
		case n.config.Residual:
			h = g.AddRepeated(h, n.node.apply(g, nn.Identity, h, sum))
		default:
			h = n.node.apply(g, nn.Relu, h, sum)
		}
	}
	return h
}

// product returns x w.
func product(g *nn.Graph, x *nn.Node, w *nn.Param) *nn.Node {
	return g.Apply("product", products{}, x.Shape()[0], w.Shape[1], x, g.Param(w))
}
