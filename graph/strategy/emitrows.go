package strategy

import (
	"placer/graph"
	"placer/units"
)

// scatterPartial reduce-scatters tensor t of op i, a partial sum, among the ranks that share its
// product.
func (e *emitter) scatterPartial(i graph.OpID, t graph.TensorID, stage int) {
	x := e.g.Tensor(t)
	c := Collective{Kind: ReduceScatter, Axis: TensorAxis, Stage: stage, Bytes: e.partialBytes(i, t), Ranks: e.s.Tensor}
	rows := graph.Tensor{DType: x.DType, Bytes: units.Bytes(ceil(int64(e.rowsBytes(i, t)), int64(e.s.Tensor)))}
	for d := range e.data {
		if !e.has(e.replicas[d*e.tensor], i) {
			continue
		}
		rs, members := e.members(d, func(r *replica) member {
			return member{rank: e.rank(r, i), in: []graph.TensorID{e.slot(r.pass[e.micro][i], t)}, outs: []graph.Tensor{rows}}
		})
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			rs[k].scattered[e.micro][t] = e.b.Output(id, 0)
		}
	}
}

// rowsFor is what replica r has of tensor t, which is by rows, for op i: what it made, or was sent.
func (e *emitter) rowsFor(r *replica, t graph.TensorID, i graph.OpID) graph.TensorID {
	if e.mixtures != nil && e.mixtures.Crosses(t, i) {
		return r.routed[e.micro][t]
	}
	return e.ownRows(r, t)
}

// ownRows is what replica r has made of tensor t, which is by rows.
func (e *emitter) ownRows(r *replica, t graph.TensorID) graph.TensorID {
	if e.split.Partial[t] {
		return r.scattered[e.micro][t]
	}
	return e.slot(r.pass[e.micro][e.g.Tensor(t).Producer], t)
}

// byRows is what op i of replica r reads of tensor t, which is by rows.
func (e *emitter) byRows(r *replica, i graph.OpID, t graph.TensorID) graph.TensorID {
	if e.readsWhole(i) {
		return r.rows[t]
	}
	return e.rowsFor(r, t, i)
}

// readsWhole reports whether op i reads all rows of what is by rows.
func (e *emitter) readsWhole(i graph.OpID) bool {
	return !e.split.ByRows[i] && !readsShape(e.g.Op(i).Kind)
}

// gatherRowsOf gathers what op i reads of all ranks' rows, once in a pass: gradients gather anew
// what the forward pass had gathered, of which ranks keep their rows alone. They do so when the
// gradients that come to the op are there, beside what reads these alone.
func (e *emitter) gatherRowsOf(i graph.OpID, stage int) {
	for _, t := range e.g.Inputs(i) {
		x := e.g.Tensor(t)
		if e.m.once[x.Producer] || !e.split.Rows[t] || !e.readsWhole(i) {
			continue
		}
		c := Collective{Kind: AllGather, Axis: TensorAxis, Stage: stage, Bytes: e.rowsBytes(i, t), Ranks: e.s.Tensor}
		for d := range e.data {
			r := e.replicas[d*e.tensor]
			if _, ok := r.rows[t]; ok || !e.has(r, i) {
				continue
			}
			if twin := e.gatheredTwin(r, t); twin != t {
				for _, r := range e.replicas {
					if r.d == d {
						r.rows[t] = r.rows[twin]
					}
				}
				continue
			}
			rs, members := e.members(d, func(r *replica) member {
				return member{rank: e.rank(r, i), wait: e.gradientsOf(r, i, t), in: []graph.TensorID{e.rowsFor(r, t, i)}, outs: []graph.Tensor{{DType: x.DType, Bytes: c.Bytes}}}
			})
			for k, id := range e.collective(c, e.g.Op(x.Producer).Name, members) {
				rs[k].rows[t] = e.b.Output(id, 0)
			}
		}
	}
}

// gatheredTwin returns what replica r has gathered of the same as t, or t where there is nothing: under
// autocast each product casts what it reads by itself, and products of one activation have it gathered
// once.
func (e *emitter) gatheredTwin(r *replica, t graph.TensorID) graph.TensorID {
	for u := range r.rows {
		if e.same(t, u) {
			return u
		}
	}
	return t
}

// same reports whether two tensors are one, or casts and views of one that do the same.
func (e *emitter) same(t, u graph.TensorID) bool {
	for t != u {
		x, y := e.g.Tensor(t), e.g.Tensor(u)
		k := e.g.Op(x.Producer).Kind
		if k != "Cast" && k != "Reshape" || e.g.Op(y.Producer).Kind != k || x.DType != y.DType || !x.Shape.Equal(y.Shape) {
			return false
		}
		t, u = e.g.Inputs(x.Producer)[0], e.g.Inputs(y.Producer)[0]
	}
	return true
}

// gradientsOf returns what a gradient, op i, waits for besides tensor t of the forward pass.
func (e *emitter) gradientsOf(r *replica, i graph.OpID, t graph.TensorID) (wait []graph.OpID) {
	if e.g.Op(i).Phase != graph.Backward || e.g.Op(e.g.Tensor(t).Producer).Phase == graph.Backward {
		return nil
	}
	for _, u := range e.g.Inputs(i) {
		p := e.g.Tensor(u).Producer
		if e.m.once[p] || e.g.Op(p).Phase != graph.Backward || !e.has(r, p) {
			continue
		}
		wait = append(wait, r.pass[e.micro][p])
		if e.s.Sequence && e.split.Rows[u] {
			wait = append(wait, e.b.TensorAt(e.rowsFor(r, u, i)).Producer)
		}
	}
	if len(wait) == 0 {
		wait = append(wait, r.lastCompute[int(e.step.Chunk[i])%e.s.Pipeline])
	}
	return wait
}

// reduceSummed all-reduces the gradients of a chunk that every rank has of its rows alone, all
// at once behind the last micro-batch.
func (e *emitter) reduceSummed(chunk, stage int) {
	var ks []int
	c := Collective{Kind: AllReduce, Axis: TensorAxis, Stage: stage, Ranks: e.s.Tensor}
	for k, t := range e.grads {
		if e.split.Summed[t] && !e.ofExperts(e.g.Tensor(t).Producer) && e.rules[k] == summed && int(e.step.Chunk[e.g.Tensor(t).Producer]) == chunk {
			ks = append(ks, k)
			c.Bytes += e.b.TensorAt(e.replicas[0].whole[k]).Bytes
		}
	}
	if len(ks) == 0 {
		return
	}
	for d := range e.data {
		rs, members := e.members(d, func(r *replica) member {
			m := member{rank: e.s.Rank(r.d, stage, r.t)}
			for _, k := range ks {
				m.wait = append(append(m.wait, e.b.TensorAt(r.whole[k]).Producer), r.behind[k]...)
			}
			return m
		})
		for at, id := range e.collective(c, "gradients of rows", members) {
			for _, k := range ks {
				rs[at].behind[k] = append(rs[at].behind[k], id)
			}
		}
	}
}
