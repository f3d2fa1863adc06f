package strategy

import (
	"fmt"

	"placer/graph"
	"placer/units"
)

// Mixtures says what expert parallelism shares out among replicas (GShard: Lepikhin et al.,
// arXiv:2006.16668, section 3; DeepSpeed-MoE: Rajbhandari et al., arXiv:2201.05596). Every replica
// has a D-th of the experts, and is sent the rows of all replicas that these are chosen for. It
// is found by structure, in the forward pass of one micro-batch: products of rows, [R,in], with
// the weights of all experts, [E,in,out], and what works on their results row by row.
type Mixtures struct {
	m *Model
	// Of says of each op, [N], that it is of experts: it works on rows that were sent, or holds
	// their weights.
	Of []bool
	// Experts is what their numbers have in common, the greatest common divisor; 0: none.
	Experts int64
}

// FindMixtures returns what of m are experts.
func FindMixtures(m *Model) *Mixtures {
	g := m.Micro
	x := &Mixtures{m: m, Of: make([]bool, g.NumOps())}
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Forward || m.once[i] {
			continue
		}
		if w, ok := x.weights(i); ok {
			x.Of[i] = true
			x.Experts = gcd(x.Experts, g.Tensor(w).Shape[0])
		} else {
			x.Of[i] = x.byRow(i)
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if !x.Of[i] || m.once[i] {
			continue
		}
		for _, t := range g.Inputs(i) {
			if m.once[g.Tensor(t).Producer] {
				x.hold(t)
			}
		}
	}
	return x
}

// weights returns the weights of all experts that product i reads.
func (x *Mixtures) weights(i graph.OpID) (graph.TensorID, bool) {
	g := x.m.Micro
	in := g.Inputs(i)
	if g.Op(i).GEMM.IsZero() || len(in) < 2 || x.m.once[g.Tensor(in[0]).Producer] {
		return 0, false
	}
	rows, w := g.Tensor(in[0]).Shape, g.Tensor(in[1]).Shape
	return in[1], x.m.once[g.Tensor(in[1]).Producer] && len(rows) == 2 && len(w) == 3 && w[0] > 1 && w[1] == rows[1]
}

// byRow reports whether op i works on each row of experts' results alone.
func (x *Mixtures) byRow(i graph.OpID) bool {
	g := x.m.Micro
	o := g.Op(i)
	if o.Kind.Class() != graph.ClassElementwise {
		return false
	}
	some := false
	for _, t := range g.Inputs(i) {
		p := g.Tensor(t).Producer
		if !x.Of[p] && !x.m.once[p] {
			return false
		}
		some = some || x.Of[p]
	}
	return some
}

// hold adds what makes tensor t, a weight or a bias of all experts.
func (x *Mixtures) hold(t graph.TensorID) {
	g := x.m.Micro
	p := g.Tensor(t).Producer
	if shape := g.Tensor(t).Shape; x.Of[p] || len(shape) < 2 || shape[0]%x.Experts != 0 {
		return
	}
	x.Of[p] = true
	for _, u := range g.Inputs(p) {
		if g.Tensor(u).Bytes == g.Tensor(t).Bytes {
			x.hold(u)
		}
	}
}

// Crosses reports whether rows of tensor t are sent, to experts or back, for op i to read.
func (x *Mixtures) Crosses(t graph.TensorID, i graph.OpID) bool {
	p := x.m.Micro.Tensor(t).Producer
	return !x.m.once[p] && x.Of[p] != x.Of[i]
}

// route sends the rows of tensors that op i reads of experts, or for them, once in a pass.
func (e *emitter) route(i graph.OpID, stage int) {
	for _, t := range e.g.Inputs(i) {
		if !e.mixtures.Crosses(t, i) {
			continue
		}
		if _, ok := e.replicas[0].routed[t]; ok {
			continue
		}
		x := e.g.Tensor(t)
		c := Collective{AllToAll, DataAxis, stage, x.Bytes, e.s.Data}
		if e.split != nil {
			c.Bytes = units.Bytes(ceil(int64(x.Bytes), e.split.partsOf(t, int64(e.s.Tensor))))
		}
		for part := range e.tensor {
			var rs []*replica
			var members []member
			for _, r := range e.replicas {
				if r.t != part {
					continue
				}
				m := member{rank: e.rank(r, i), in: []graph.TensorID{e.slot(r.pass[e.micro][x.Producer], t)}, outs: []graph.Tensor{{DType: x.DType, Bytes: c.Bytes}}}
				if w, ok := r.after[e.micro][t]; ok {
					m.wait = append(m.wait, w)
				}
				rs, members = append(rs, r), append(members, m)
			}
			for k, id := range e.collective(c, e.g.Op(i).Name, members) {
				rs[k].routed[t] = e.b.Output(id, 0)
			}
		}
	}
}

// shareExperts reports why replicas cannot share experts out.
func (e *emitter) shareExperts() error {
	name, d := e.g.Name(), int64(e.s.Data)
	x := FindMixtures(e.m)
	switch {
	case x.Experts == 0:
		return fmt.Errorf("graph %s: it has no experts that replicas could share out", name)
	case x.Experts%d != 0:
		return fmt.Errorf("graph %s: %d replicas cannot share %d experts out evenly", name, d, x.Experts)
	case Trains(e.g):
		return fmt.Errorf("graph %s: experts are shared out among replicas in inference alone", name)
	case e.m.Joint == nil || e.m.Joint.NumOps() != e.g.NumOps():
		return fmt.Errorf("graph %s: its ops depend on the batch, or the step of all replicas' micro-batches is missing", name)
	}
	e.mixtures = x
	return nil
}
