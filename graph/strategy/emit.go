package strategy

import (
	"placer/graph"
	"placer/units"
)

// onceOp adds op i, which is there once, to every replica.
func (e *emitter) onceOp(i graph.OpID) {
	g, share := e.g, int64(1)
	if o := e.g.Op(i); o.Phase == graph.Update {
		g = e.m.Whole
		if e.s.Sharding >= ShardOptimizer {
			share = int64(e.copiesOf(i))
		}
	} else if e.s.Sharding >= ShardOptimizer && e.m.ofUpdates(i) || o.Params > 0 && e.s.Sharding == ShardAll {
		share = int64(e.copiesOf(i))
	}
	share *= e.expertShare(i)
	e.micro = -1
	for _, r := range e.replicas {
		if !e.has(r, i) {
			continue
		}
		var in []graph.TensorID
		var waits []graph.OpID
		for _, t := range e.g.Inputs(i) {
			if !e.has(r, e.g.Tensor(t).Producer) { // norms of others' gradients
				continue
			}
			if k, ok := e.gradient[t]; ok {
				in = append(in, r.whole[k])
				waits = append(waits, r.behind[k]...)
				continue
			}
			if id, ok := r.agreed[e.g.Tensor(t).Producer]; ok {
				waits = append(waits, id)
			}
			in = append(in, e.slot(r.once[e.g.Tensor(t).Producer], t))
		}
		o := e.copied(r, g, i, share)
		id := e.add(o, e.rank(r, i), i, -1, in, e.outputs(g, i, share)...)
		r.once[i] = id
		for _, w := range waits {
			e.wait(w, id)
		}
		for _, c := range e.g.Control(i) {
			if e.m.once[c] {
				e.wait(r.once[c], id)
			} else {
				e.wait(r.pass[e.s.MicroBatches-1][c], id)
			}
		}
	}
}

// copied is op i as replica r has it.
func (e *emitter) copied(r *replica, g *graph.Graph, i graph.OpID, share int64) graph.Op {
	o := e.scaled(g, i, share)
	o.Name = e.name(r, o.Name)
	if o.Group > 0 {
		o.Group += e.group * int32(r.d*e.tensor+r.t)
	}
	return o
}

// slot is the copy of tensor t of the given graph that op id makes.
func (e *emitter) slot(id graph.OpID, t graph.TensorID) graph.TensorID {
	return e.b.Output(id, int(t-first(e.g, e.g.Tensor(t).Producer)))
}

// pass adds the ops of one pass of one micro-batch through one chunk.
func (e *emitter) pass(t task, gates map[int]*gate) {
	stage := t.chunk % e.s.Pipeline
	g := gates[stage]
	if g == nil {
		g = &gate{last: none(len(e.replicas))}
		gates[stage] = g
	}
	g.open(e)
	e.micro = int32(t.micro)
	kind := task{chunk: t.chunk, backward: t.backward}
	for _, r := range e.replicas {
		if r.pass[t.micro] == nil {
			r.pass[t.micro], r.after[t.micro] = none(e.g.NumOps()), map[graph.TensorID]graph.OpID{}
			r.scattered[t.micro], r.routed[t.micro], r.ownTokens[t.micro] = map[graph.TensorID]graph.TensorID{}, map[graph.TensorID]graph.TensorID{}, map[graph.TensorID]graph.TensorID{}
		}
		r.gathered, r.rows = map[graph.TensorID]graph.TensorID{}, map[graph.TensorID]graph.TensorID{}
	}
	for _, i := range e.lists[kind] {
		e.passOps(i, t)
	}
	switch {
	case !t.backward:
	case e.s.Data > 1 && e.s.Sharding >= ShardGradients:
		for p := range e.s.Pipeline {
			e.reduce(p)
		}
	case t.micro == e.s.MicroBatches-1:
		e.reduce(stage)
	}
	if e.s.Sequence && t.backward && t.micro == e.s.MicroBatches-1 {
		e.reduceSummed(t.chunk, stage)
	}
	g.shut(e, t, stage)
}

// passOps adds the copies of op i in pass t, where they are not there yet, with the communication
// before and behind them.
func (e *emitter) passOps(i graph.OpID, t task) {
	stage := t.chunk % e.s.Pipeline
	if e.mixtures != nil {
		if e.done[i] == t.micro+1 {
			return
		}
		e.done[i] = t.micro + 1
		e.route(i, t)
	}
	if e.weight != nil {
		e.gather(i, stage, task{chunk: t.chunk, backward: t.backward})
	}
	if e.s.Sequence {
		e.gatherRowsOf(i, stage)
	}
	if e.s.Context > 0 {
		e.gatherTokens(i, stage)
	}
	for _, r := range e.replicas {
		if e.has(r, i) {
			e.passOp(r, i, t.micro)
		}
	}
	if e.s.Context > 0 {
		e.scatterTokens(i, stage)
	}
	e.afterOp(i, stage)
}

// passOp adds the copy of op i for micro-batch k.
func (e *emitter) passOp(r *replica, i graph.OpID, k int) {
	in := make([]graph.TensorID, 0, len(e.g.Inputs(i)))
	var waits []graph.OpID
	for _, t := range e.g.Inputs(i) {
		p := e.g.Tensor(t).Producer
		switch {
		case e.weight != nil && e.weight[t]:
			in = append(in, r.gathered[t])
		case e.m.once[p]:
			in = append(in, e.slot(r.once[p], t))
		case e.s.Sequence && e.split.Rows[t]:
			in = append(in, e.byRows(r, i, t))
		case e.mixtures != nil && e.mixtures.Crosses(t, i):
			in = append(in, r.routed[k][t])
		case e.s.Context > 0 && readsAll(e.g, t, i):
			in = append(in, r.gatheredTokens[t])
		default:
			in = append(in, e.made(r, t))
			if w, ok := r.after[k][t]; ok {
				waits = append(waits, w)
			}
		}
	}
	g, share := e.g, int64(1)
	if e.ofExperts(i) {
		g, share = e.m.Joint, e.expertShare(i)
	}
	o := e.copied(r, g, i, share)
	o.Group = 0 // its stage says where it is, which may not be that of its group
	if f := o.Forward; f != graph.None {
		switch {
		case e.m.once[f]:
			o.Forward = r.once[f]
		default:
			o.Forward = r.pass[k][f]
		}
	}
	outs := e.outputs(g, i, share)
	if e.s.Context > 0 {
		for k := range outs {
			if t := first(e.g, i) + graph.TensorID(k); givesAll(e.g, t, i) {
				outs[k].Shape, outs[k].Bytes = nil, e.allTokens(t)
			}
		}
	}
	id := e.add(o, e.rank(r, i), i, e.micro, in, outs...)
	r.pass[k][i] = id
	r.lastCompute[int(e.step.Chunk[i])%e.s.Pipeline] = id
	for _, w := range waits {
		e.note(w, id)
	}
	for _, c := range e.g.Control(i) {
		if e.m.once[c] {
			e.note(r.once[c], id)
		} else {
			e.note(r.pass[k][c], id)
		}
	}
}

// note is wait, for edges that gates look at.
func (e *emitter) note(before, after graph.OpID) {
	e.wait(before, after)
	e.edges = append(e.edges, [2]graph.OpID{before, after})
}

// afterOp adds what follows the copies of op i of all replicas: reductions of partial
// sums, and gradients.
func (e *emitter) afterOp(i graph.OpID, stage int) {
	if e.split != nil && e.split.Statistics[i] {
		e.reduceStatistics(i, stage)
	}
	t, end := e.g.Outputs(i)
	for ; t < end; t++ {
		if e.split != nil && e.split.Partial[t] {
			if e.split.Rows[t] {
				e.scatterPartial(i, t, stage)
			} else {
				e.reducePartial(i, t, stage, e.partialBytes(i, t))
			}
		} else if e.split != nil && e.split.Moments[t] > 0 {
			e.reducePartial(i, t, stage, e.split.Moments[t])
		}
		if k, ok := e.gradient[t]; ok {
			for _, r := range e.replicas {
				if e.has(r, i) {
					e.addGradient(r, k, i, t)
				}
			}
			e.queue(k, t)
		}
	}
}

// members returns the ranks of replica d that share a stage's products, with their parts in a
// collective.
func (e *emitter) members(d int, part func(*replica) member) (rs []*replica, ms []member) {
	for _, r := range e.replicas {
		if r.d == d {
			rs, ms = append(rs, r), append(ms, part(r))
		}
	}
	return rs, ms
}

// reducePartial all-reduces so many bytes of tensor t of op i among the ranks that share its
// product, in place: readers wait for the end.
func (e *emitter) reducePartial(i graph.OpID, t graph.TensorID, stage int, bytes units.Bytes) {
	c := Collective{Kind: AllReduce, Axis: TensorAxis, Stage: stage, Bytes: bytes, Ranks: e.s.Tensor}
	for d := range e.data {
		if !e.has(e.replicas[d*e.tensor], i) {
			continue
		}
		rs, members := e.members(d, func(r *replica) member {
			return member{rank: e.rank(r, i), wait: []graph.OpID{r.pass[e.micro][i]}}
		})
		for k, id := range e.collective(c, e.g.Op(i).Name, members) {
			rs[k].after[e.micro][t] = id
		}
	}
}

// rowsBytes are the bytes of tensor t of op i on a replica: of experts, those of all rows that it is
// sent.
func (e *emitter) rowsBytes(i graph.OpID, t graph.TensorID) units.Bytes {
	if e.ofExperts(i) {
		return units.Bytes(ceil(int64(e.m.Joint.Tensor(t).Bytes), e.expertShare(i)))
	}
	return e.g.Tensor(t).Bytes
}

// partialBytes are the bytes as which tensor t of op i, a partial sum, is reduced.
func (e *emitter) partialBytes(i graph.OpID, t graph.TensorID) units.Bytes {
	return e.rowsBytes(i, t) / units.Bytes(max(1, e.split.Narrow[t]))
}

// gate makes the passes of a stage follow one another.
type gate struct {
	last  []graph.OpID // end of the pass before, by replica
	past  [][]graph.OpID
	begin int
}

// open begins a pass.
func (g *gate) open(e *emitter) {
	g.begin = e.b.NumOps()
	e.edges = e.edges[:0]
}

// shut ends it: its first ops wait for the end of the pass before (under Free, passes of
// the first chunk for that of the micro-batch as many before as may be under way).
func (g *gate) shut(e *emitter, t task, stage int) {
	if e.s.Schedule == Unordered {
		return
	}
	n := e.b.NumOps() - g.begin
	follows, followed := make([]bool, n), make([]bool, n)
	mark := func(p, id graph.OpID) {
		if int(p) >= g.begin && int(id) >= g.begin {
			followed[int(p)-g.begin], follows[int(id)-g.begin] = true, true
		}
	}
	for k := range n {
		id := graph.OpID(g.begin + k)
		for _, x := range e.b.InputsAt(id) {
			mark(e.b.TensorAt(x).Producer, id)
		}
	}
	for _, edge := range e.edges {
		mark(edge[0], edge[1])
	}
	free := e.s.Schedule == Free
	if free && (t.chunk > 0 || e.s.MicroBatches <= e.s.underWay()) {
		return
	}
	for q, r := range e.replicas {
		rank := int32(e.s.Rank(r.d, stage, r.t))
		before := g.last[q]
		if free {
			before = absent
			if w := t.micro - e.s.underWay(); !t.backward && w >= 0 {
				before = g.past[q][w]
			}
		}
		var ends []graph.OpID
		for k := range n {
			id := graph.OpID(g.begin + k)
			if e.step.Rank[id] != rank || e.step.Stream[id] || e.step.Micro[id] < 0 {
				continue
			}
			if !follows[k] {
				e.wait(before, id)
			}
			if !followed[k] {
				ends = append(ends, id)
			}
		}
		if free && !t.backward {
			continue
		}
		end := e.add(graph.Op{Name: e.name(r, gateName(t)), Kind: "NoOp", Phase: graph.Backward, Forward: graph.None}, int(rank), graph.None, -1, nil)
		e.wait(before, end)
		for _, id := range ends {
			e.wait(id, end)
		}
		g.last[q] = end
		if free {
			if g.past == nil {
				g.past = make([][]graph.OpID, len(e.replicas))
			}
			g.past[q] = append(g.past[q], end)
		}
	}
}

func gateName(t task) string {
	if t.backward {
		return "end_of_backward/chunk" + itoa(t.chunk)
	}
	return "end_of_forward/chunk" + itoa(t.chunk)
}
