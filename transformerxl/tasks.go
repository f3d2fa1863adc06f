package transformerxl

import (
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
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
	in      nn.Norm
	project *nn.Affine // nil for the first task, and where tasks are apart
	mid     *nn.Norm   // of the residual connection, if there is one
	fc1     nn.Affine
	fc2     nn.Affine
}

// outputScale makes the first policy nearly uniform.
const outputScale = 0.1

// addHeads adds the heads of all tasks. The attention that they share goes by the name of the
// first.
func (n *Network) addHeads(ps *nn.Params, r *rand.Rand) {
	c := n.config
	for i, t := range c.Tasks() {
		h := head{task: t}
		if i == 0 || c.TasksApart {
			h.in = ps.Norm(t.Name+".norm", c.Width)
		} else {
			wide := n.heads[i-1].task.Columns() + c.Width
			h.in = ps.Norm(t.Name+".norm", wide)
			p := ps.Affine(t.Name+".project", r, wide, c.Width)
			h.project = &p
		}
		if i == 0 {
			n.attend = newAttend(c, ps, r, t.Name+".attention")
		}
		if c.HeadResidual && c.Attention {
			m := ps.Norm(t.Name+".residual", c.Width)
			h.mid = &m
		}
		h.fc1 = ps.Affine(t.Name+".fc1", r, c.Width, c.Width)
		h.fc2 = ps.Affine(t.Name+".fc2", r, c.Width, t.Columns())
		vec.Scale(h.fc2.W[0].Value, outputScale)
		n.heads = append(n.heads, h)
	}
}

// decide adds the tasks one after another; x [R,d] are the last layer's states.
func (n *Network) decide(g *nn.Graph, x *nn.Node, s *[]Segment) (logits []*nn.Node) {
	hidden := x
	for i, h := range n.heads {
		if h.project == nil {
			hidden = h.in.Apply(g, x)
		} else {
			hidden = h.project.Apply(g, nn.Identity, h.in.Apply(g, g.Concat(logits[i-1], hidden)))
		}
		a := hidden
		if n.attend != nil {
			a = n.attend.apply(g, hidden, s)
			if h.mid != nil {
				a = h.mid.Apply(g, hidden, a)
			}
		}
		logits = append(logits, h.fc2.Apply(g, nn.Identity, h.fc1.Apply(g, nn.Relu, a)))
	}
	return logits
}
