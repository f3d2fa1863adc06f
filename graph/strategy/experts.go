package strategy

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/units"
)

// crossing is what is sent to experts, or back, at once: the rows of a layer.
type crossing struct {
	chunk    int32
	backward bool // in that pass
	back     bool // from experts
	again    bool // of what is computed again
	depth    int  // of what is sent: the most crossings on a way to it
}

// crossings finds what is sent at once. Tensors of one crossing do not depend on one another's
// being sent.
func (e *emitter) crossings() {
	g, x := e.g, e.mixtures
	e.crossing, e.sent = map[graph.TensorID]crossing{}, map[crossing][]graph.TensorID{}
	depth := make([]int, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		if e.m.once[i] {
			continue
		}
		for _, t := range g.Inputs(i) {
			p := g.Tensor(t).Producer
			if e.m.once[p] {
				continue
			}
			if !x.Crosses(t, i) {
				depth[i] = max(depth[i], depth[p])
				continue
			}
			depth[i] = max(depth[i], depth[p]+1)
			if _, ok := e.crossing[t]; !ok {
				c := crossing{chunk: e.step.Chunk[i], backward: g.Op(i).Phase == graph.Backward, back: x.Of[p], depth: depth[p]}
				if f := g.Op(p).Forward; f != graph.None {
					forward, ok := e.crossing[first(g, f)]
					c.again = ok && forward.back == c.back
				}
				e.crossing[t], e.sent[c] = c, append(e.sent[c], t)
			}
		}
		for _, c := range g.Control(i) {
			depth[i] = max(depth[i], depth[c])
		}
	}
}

// route sends the rows that op i reads of experts, or for them, once for a micro-batch: what the
// forward pass was sent is kept for its gradients. What else is sent with them is made first.
func (e *emitter) route(i graph.OpID, t task) {
	for _, x := range e.g.Inputs(i) {
		if !e.mixtures.Crosses(x, i) {
			continue
		}
		c := e.crossing[x]
		key := routed{c, t.micro}
		if e.routed[key] {
			continue
		}
		e.routed[key] = true
		for _, y := range e.sent[c] {
			e.before(e.g.Tensor(y).Producer, t)
		}
		e.send(e.sent[c], i)
	}
}

// routed is a crossing of a micro-batch.
type routed struct {
	crossing
	micro int
}

// before adds op i and what it needs in its pass, where they are not there yet.
func (e *emitter) before(i graph.OpID, t task) {
	if e.done[i] == t.micro+1 || e.step.Chunk[i] != int32(t.chunk) || (e.g.Op(i).Phase == graph.Backward) != t.backward {
		return
	}
	for p := range e.g.Predecessors(i) {
		if !e.m.once[p] {
			e.before(p, t)
		}
	}
	for _, p := range e.g.Control(i) {
		if !e.m.once[p] {
			e.before(p, t)
		}
	}
	e.passOps(i, t)
}

// send adds the all-to-all of tensors ts, which op i is the first to read, in each group of
// replicas that share experts out. Of what the ranks of split products all have, each sends a part,
// and those that it comes to gather the parts (Singh et al., arXiv:2303.06318;
// Megatron-LM's ranks have parts anyway, as it wants sequences split).
func (e *emitter) send(ts []graph.TensorID, i graph.OpID) {
	stage := int(e.step.Chunk[i]) % e.s.Pipeline
	c := Collective{Kind: AllToAll, Axis: ExpertAxis, Stage: stage, Bytes: 0, Ranks: e.s.Experts}
	for _, t := range ts {
		c.Bytes += units.Bytes(e.sentPart(t).of(int64(e.g.Tensor(t).Bytes)))
	}
	back := e.mixtures.Of[e.g.Tensor(ts[0]).Producer]
	e.expertGroups(func(rs []*replica) {
		members := make([]member, len(rs))
		got := make([][]graph.TensorID, len(rs))
		for k, r := range rs {
			m := member{rank: e.s.Rank(r.d, stage, r.t)}
			for _, t := range ts {
				p := e.g.Tensor(t).Producer
				if id := r.pass[e.micro][p]; id != absent {
					if e.s.Sequence && e.split.Rows[t] {
						m.in = append(m.in, e.ownRows(r, t))
					} else {
						m.in = append(m.in, e.slot(id, t))
					}
					if w, ok := r.after[e.micro][t]; ok {
						m.wait = append(m.wait, w)
					}
				}
				out, ok := e.received(r, t, back)
				if !ok {
					continue
				}
				out.Bytes = units.Bytes(e.sentPart(t).of(int64(out.Bytes)))
				m.outs, got[k] = append(m.outs, out), append(got[k], t)
			}
			members[k] = m
		}
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			for at, t := range got[k] {
				rs[k].routed[e.micro][t] = e.b.Output(id, at)
			}
		}
	})
	e.gatherSent(ts, i, back)
}

// received is what replica r gets of tensor t, which is sent to experts or back, all ranks of split
// products together; nothing of what its experts do not read.
func (e *emitter) received(r *replica, t graph.TensorID, back bool) (x graph.Tensor, ok bool) {
	x = graph.Tensor{DType: e.g.Tensor(t).DType, Bytes: e.g.Tensor(t).Bytes}
	if back {
		return x, true
	}
	reader := e.readerOf(t)
	x.Bytes = units.Bytes(ceil(int64(e.m.Joint.Tensor(t).Bytes), e.mixtures.share(reader, e.s.Experts)))
	return x, e.has(r, reader)
}

// gatherSent gathers, among the ranks of split products, what was sent of those tensors of ts that
// each of them has whole.
func (e *emitter) gatherSent(ts []graph.TensorID, i graph.OpID, back bool) {
	if e.s.Tensor == 1 {
		return
	}
	stage := int(e.step.Chunk[i]) % e.s.Pipeline
	for d := range e.data {
		c := Collective{Kind: AllGather, Axis: TensorAxis, Stage: stage, Ranks: e.s.Tensor}
		var outs []graph.Tensor
		var got []graph.TensorID
		for _, t := range ts {
			out, ok := e.received(e.replicas[d*e.tensor], t, back)
			if whole := e.tensorPart(t); !ok || whole.num < whole.den {
				continue
			}
			c.Bytes += out.Bytes
			outs, got = append(outs, out), append(got, t)
		}
		if len(got) == 0 {
			continue
		}
		rs, members := e.members(d, func(r *replica) member {
			m := member{rank: e.s.Rank(r.d, stage, r.t), outs: outs}
			for _, t := range got {
				m.in = append(m.in, r.routed[e.micro][t])
			}
			return m
		})
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			for at, t := range got {
				rs[k].routed[e.micro][t] = e.b.Output(id, at)
			}
		}
	}
}

// readerOf returns an op of experts that tensor t is sent to.
func (e *emitter) readerOf(t graph.TensorID) graph.OpID {
	c := e.g.Consumers(t)
	return c[slices.IndexFunc(c, func(v graph.OpID) bool { return e.mixtures.Crosses(t, v) })]
}

// tensorPart returns what each of the ranks that share products has of tensor t.
func (e *emitter) tensorPart(t graph.TensorID) fraction {
	switch {
	case e.split == nil:
		return fraction{1, 1}
	case e.split.Rows[t]:
		return fraction{1, int64(e.s.Tensor)}
	}
	return e.split.partOfTensor(t, int64(e.s.Tensor))
}

// sentPart returns what each of these ranks sends of tensor t.
func (e *emitter) sentPart(t graph.TensorID) fraction {
	part := e.tensorPart(t)
	if part.num < part.den {
		return part
	}
	return fraction{1, int64(e.s.Tensor)}
}

// expertGroups calls f for each group of replicas, in the order of their ranks, that share
// experts out.
func (e *emitter) expertGroups(f func([]*replica)) {
	for part := range e.tensor {
		for from := 0; from < e.data; from += max(1, e.s.Experts) {
			var rs []*replica
			for _, r := range e.replicas {
				if r.t == part && r.d/e.s.Experts == from/e.s.Experts {
					rs = append(rs, r)
				}
			}
			f(rs)
		}
	}
}

// has reports whether replica r has a part of op i.
func (e *emitter) has(r *replica, i graph.OpID) bool {
	return e.mixtures == nil || e.mixtures.Has(i, r.d%e.s.Experts, e.s.Experts)
}

// ofExperts reports whether op i is one of experts that are shared out.
func (e *emitter) ofExperts(i graph.OpID) bool { return e.mixtures != nil && e.mixtures.Of[i] }

// copiesOf returns how many replicas have the same part of what op i holds or updates: all, or of
// experts one in each group.
func (e *emitter) copiesOf(i graph.OpID) int {
	if e.ofExperts(i) {
		return e.s.Data / e.s.Experts
	}
	return e.s.Data
}

// expertShare returns in how many parts replicas share what op i does.
func (e *emitter) expertShare(i graph.OpID) int64 {
	if e.mixtures == nil {
		return 1
	}
	return e.mixtures.share(i, e.s.Experts)
}

// shareExperts reports why replicas cannot share experts out.
func (e *emitter) shareExperts() error {
	name, n := e.g.Name(), int64(e.s.Experts)
	x := FindMixtures(e.m)
	switch {
	case x.Experts == 0:
		return fmt.Errorf("graph %s: it has no experts that replicas could share out", name)
	case x.Experts%n != 0:
		return fmt.Errorf("graph %s: %d replicas cannot share %d experts out evenly", name, n, x.Experts)
	case e.m.Joint == nil || e.m.Joint.NumOps() != e.g.NumOps():
		return fmt.Errorf("graph %s: its ops depend on the batch, or the step of all replicas' micro-batches is missing", name)
	}
	e.mixtures, e.routed, e.done = x, map[routed]bool{}, make([]int, e.g.NumOps())
	e.crossings()
	return nil
}
