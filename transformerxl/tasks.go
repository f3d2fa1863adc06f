package transformerxl

import (
	"math/rand/v2"

	"placer/nn"
)

// The recurrent attention over the sequence of tasks (GO, section 4.4). Task t,
// after task t-1, has
//
//	H_t = LayerNorm(concat(A_{t-1}, H_{t-1}))
//	A_t = FC(MultiHeadAttention(H_t)),  FC = affine, ReLU, affine
//
// The first task, without one before it, has H = LayerNorm(x). The parameters of
// the multi-head attention are the same for all tasks. They ask for one width,
// and concatenation widens: so H_t is projected to d, by an affine map of each
// task's own, as the paper leaves open.

// head is what a task has of its own.
type head struct {
	task    Task
	in      norm
	project *affine // nil for the first task, and where tasks are apart
	mid     *norm   // of the residual connection, if there is one
	fc1     affine
	fc2     affine
}

// outputScale makes the first policy nearly uniform.
const outputScale = 0.1

// addHeads adds what the configured tasks lack: all heads of a new network. The
// shared attention goes by the name of the first task.
func (n *Network) addHeads(ps *nn.Params, r *rand.Rand) {
	c := n.config
	for i, t := range c.Tasks() {
		if i < len(n.heads) {
			continue
		}
		h := head{task: t}
		if i == 0 || c.TasksApart {
			h.in = newNorm(ps, t.Name+".norm", c.Width)
		} else {
			wide := n.heads[i-1].task.Columns() + c.Width
			h.in = newNorm(ps, t.Name+".norm", wide)
			p := newAffine(ps, r, t.Name+".project", wide, c.Width)
			h.project = &p
		}
		if i == 0 {
			n.attend = newAttend(c, ps, r, t.Name+".attention")
		}
		if c.HeadResidual && c.Attention {
			m := newNorm(ps, t.Name+".residual", c.Width)
			h.mid = &m
		}
		h.fc1 = newAffine(ps, r, t.Name+".fc1", c.Width, c.Width)
		h.fc2 = newAffine(ps, r, t.Name+".fc2", c.Width, t.Columns())
		for i := range h.fc2.w[0].Value {
			h.fc2.w[0].Value[i] *= outputScale
		}
		n.heads = append(n.heads, h)
	}
}

// Extend gives a network that lacks tasks of c heads for them, with random
// weights; what it has stays. c must differ from the network's configuration in
// tasks after its last only.
func (n *Network) Extend(c Config, ps *nn.Params, r *rand.Rand) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := n.config.extends(c); err != nil {
		return err
	}
	n.config = c
	n.addHeads(ps, r)
	return nil
}

// decide adds the tasks one after another; x [R,d] are the last layer's states.
func (n *Network) decide(g *nn.Graph, x *nn.Node, s *[]Segment) (logits []*nn.Node) {
	hidden := x
	for i, h := range n.heads {
		if h.project == nil {
			hidden = h.in.apply(g, x)
		} else {
			hidden = h.project.apply(g, nn.Identity, h.in.apply(g, g.Concat(logits[i-1], hidden)))
		}
		a := hidden
		if n.attend != nil {
			a = n.attend.apply(g, hidden, s)
			if h.mid != nil {
				a = h.mid.apply(g, hidden, a)
			}
		}
		logits = append(logits, h.fc2.apply(g, nn.Identity, h.fc1.apply(g, nn.Relu, a)))
	}
	return logits
}
