package strategy

import (
	"placer/graph"
	"placer/units"
)

// gatherTokens gathers the keys and values that op i, attention or its gradient, reads, among the
// replicas that share tokens out: each op anew, so that none keeps what others made.
func (e *emitter) gatherTokens(i graph.OpID, stage int) {
	var ts []graph.TensorID
	for _, t := range e.g.Inputs(i) {
		if readsAll(e.g, t, i) {
			ts = append(ts, t)
		}
	}
	if len(ts) == 0 {
		return
	}
	c := Collective{Kind: AllGather, Axis: TokenAxis, Stage: stage, Ranks: e.s.Context}
	var outs []graph.Tensor
	for _, t := range ts {
		whole := e.allTokens(t)
		c.Bytes += whole
		outs = append(outs, graph.Tensor{DType: e.g.Tensor(t).DType, Bytes: whole})
	}
	e.tokenGroups(func(rs []*replica) {
		members := make([]member, len(rs))
		for k, r := range rs {
			m := member{rank: e.rank(r, i), outs: outs}
			for _, t := range ts {
				m.in = append(m.in, e.made(r, t))
				m.wait = append(m.wait, e.gradientsOf(r, i, t)...)
				if w, ok := r.after[e.micro][t]; ok {
					m.wait = append(m.wait, w)
				}
			}
			members[k] = m
		}
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			rs[k].gatheredTokens = map[graph.TensorID]graph.TensorID{}
			for at, t := range ts {
				rs[k].gatheredTokens[t] = e.b.Output(id, at)
			}
		}
	})
}

// scatterTokens gives each of the replicas that share tokens out the sum over all of what op i makes of
// gradients of its keys and values.
func (e *emitter) scatterTokens(i graph.OpID, stage int) {
	var ts []graph.TensorID
	for t, end := e.g.Outputs(i); t < end; t++ {
		if givesAll(e.g, t, i) {
			ts = append(ts, t)
		}
	}
	if len(ts) == 0 {
		return
	}
	c := Collective{Kind: ReduceScatter, Axis: TokenAxis, Stage: stage, Ranks: e.s.Context}
	var outs []graph.Tensor
	for _, t := range ts {
		c.Bytes += e.allTokens(t)
		outs = append(outs, graph.Tensor{DType: e.g.Tensor(t).DType, Bytes: units.Bytes(e.tensorPart(t).of(int64(e.g.Tensor(t).Bytes)))})
	}
	e.tokenGroups(func(rs []*replica) {
		members := make([]member, len(rs))
		for k, r := range rs {
			m := member{rank: e.rank(r, i), outs: outs}
			for _, t := range ts {
				m.in = append(m.in, e.slot(r.pass[e.micro][i], t))
			}
			members[k] = m
		}
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			for at, t := range ts {
				rs[k].ownTokens[e.micro][t] = e.b.Output(id, at)
			}
		}
	})
}

// made is what replica r has made of tensor t in the micro-batch under way: its own tokens'.
func (e *emitter) made(r *replica, t graph.TensorID) graph.TensorID {
	if own, ok := r.ownTokens[e.micro][t]; ok {
		return own
	}
	return e.slot(r.pass[e.micro][e.g.Tensor(t).Producer], t)
}

// allTokens are the bytes of tensor t, of keys or values or a gradient of them, of all tokens.
func (e *emitter) allTokens(t graph.TensorID) units.Bytes {
	return units.Bytes(e.s.Context) * units.Bytes(e.tensorPart(t).of(int64(e.g.Tensor(t).Bytes)))
}

// tokenGroups calls f for each group of replicas that share tokens out.
func (e *emitter) tokenGroups(f func([]*replica)) {
	for part := range e.tensor {
		rs := e.part(part)
		for from := 0; from < len(rs); from += e.s.Context {
			f(rs[from:min(from+e.s.Context, len(rs))])
		}
	}
}
