package strategy

import (
	"fmt"
	"strconv"

	"placer/graph"
	"placer/units"
)

func itoa(n int) string { return strconv.Itoa(n) }

// home returns the op that is there once and reads gradient k last: its device holds the
// gradient's buffer.
func (e *emitter) home(k int) graph.OpID {
	at := graph.None
	for _, v := range e.g.Consumers(e.grads[k]) {
		if e.m.once[v] {
			at = v
		}
	}
	return at
}

// groupOf returns the co-location group of gradient k's readers for replica r, 0 for none.
func (e *emitter) groupOf(r *replica, k int) int32 {
	for _, v := range e.g.Consumers(e.grads[k]) {
		if o := e.g.Op(v); e.m.once[v] && o.Group > 0 {
			return o.Group + e.group*int32(r.d*e.tensor+r.t)
		}
	}
	return 0
}

// sharded reports whether replicas hold a share of gradient k alone.
func (e *emitter) sharded(k int) bool { return e.among(k) > 1 && e.s.Sharding >= ShardGradients }

// among returns the number of replicas that reduce gradient k.
func (e *emitter) among(k int) int { return e.copiesOf(e.g.Tensor(e.grads[k]).Producer) }

// gradientBytes are the bytes of gradient t on a rank before it is shared out.
func (e *emitter) gradientBytes(t graph.TensorID) units.Bytes {
	part := fraction{1, 1}
	if e.split != nil {
		part = e.split.partOfTensor(t, int64(e.s.Tensor))
	}
	return units.Bytes(part.over(e.expertShare(e.g.Tensor(t).Producer)).of(int64(e.g.Tensor(t).Bytes)))
}

// buffered reports whether gradient k has a buffer of its own throughout the step: where several
// micro-batches are summed, and where replicas all-reduce it, in the buckets that PyTorch's
// DistributedDataParallel (with gradients as views of them) and Megatron-LM hold.
func (e *emitter) buffered(k int) bool {
	return e.rules[k] == summed && (e.s.MicroBatches > 1 || e.s.Sharding == Replicated && e.among(k) > 1)
}

// buffers adds what gradients are summed in, or copied to where there is nothing to sum.
func (e *emitter) buffers() {
	for k, t := range e.grads {
		if !e.buffered(k) {
			continue
		}
		size := e.gradientBytes(t)
		if e.sharded(k) {
			size = units.Bytes(ceil(int64(size), int64(e.among(k))))
		}
		p := e.g.Tensor(t).Producer
		o := graph.Op{Name: fmt.Sprintf("gradient/%s:%d", e.g.Op(p).Name, t-first(e.g, p)), Kind: "VariableV2", Phase: graph.Backward, DType: e.g.Tensor(t).DType, Resident: size, Layer: e.g.Op(p).Layer, Module: e.g.Op(p).Module, Forward: graph.None}
		for _, r := range e.replicas {
			if !e.has(r, p) {
				continue
			}
			c := o
			c.Name, c.Group = e.name(r, o.Name), e.groupOf(r, k)
			r.sum[k] = e.add(c, e.rank(r, e.home(k)), p, -1, nil, graph.Tensor{DType: c.DType, Bytes: size, Resident: true})
		}
	}
}

// addGradient takes in gradient k, tensor t of op i, of the micro-batch under way.
func (e *emitter) addGradient(r *replica, k int, i graph.OpID, t graph.TensorID) {
	x := e.slot(r.pass[e.micro][i], t)
	switch {
	case e.rules[k] == last || e.s.MicroBatches == 1 && !e.buffered(k):
		r.whole[k] = x
	case e.rules[k] == concatenated:
		if r.pieces[k] = append(r.pieces[k], x); len(r.pieces[k]) < e.s.MicroBatches {
			return
		}
		p := e.g.Op(i)
		size := e.gradientBytes(t) * units.Bytes(e.s.MicroBatches)
		o := graph.Op{Name: e.name(r, "gradient/"+p.Name), Kind: "ConcatV2", Phase: graph.Backward, DType: e.g.Tensor(t).DType, Bytes: 2 * size, Layer: p.Layer, Module: p.Module, Forward: graph.None}
		id := e.add(o, e.rank(r, e.home(k)), i, e.micro, r.pieces[k], graph.Tensor{DType: e.g.Tensor(t).DType, Bytes: size})
		r.whole[k] = e.b.Output(id, 0)
	case e.sharded(k): // the share is added when it comes
		r.whole[k] = x
	default:
		e.accumulate(r, k, x)
	}
}

// accumulate adds tensor x to the sum of gradient k, or makes it the sum where nothing else is.
func (e *emitter) accumulate(r *replica, k int, x graph.TensorID) {
	sum := r.sum[k]
	held := *e.b.TensorAt(e.b.Output(sum, 0))
	p := e.g.Op(e.g.Tensor(e.grads[k]).Producer)
	o := graph.Op{
		Name: e.name(r, fmt.Sprintf("add/%s:%d", p.Name, e.grads[k]-first(e.g, e.g.Tensor(e.grads[k]).Producer))), Kind: "AssignAdd", Phase: graph.Backward, DType: held.DType,
		FLOPs: units.FLOPs(int64(held.Bytes) / held.DType.Size()), Bytes: 3 * held.Bytes, Layer: p.Layer, Module: p.Module, Group: e.groupOf(r, k), Forward: graph.None,
	}
	if e.s.MicroBatches == 1 {
		o.Kind, o.FLOPs, o.Bytes = "Assign", 0, 2*held.Bytes
	}
	r.sum[k] = e.add(o, e.rank(r, e.home(k)), e.g.Tensor(e.grads[k]).Producer, e.micro, []graph.TensorID{e.b.Output(sum, 0), x}, held)
	r.whole[k] = e.b.Output(r.sum[k], 0)
}

// queue puts gradient k, complete on all replicas, into the bucket of its stage.
func (e *emitter) queue(k int, t graph.TensorID) {
	if e.among(k) == 1 || e.rules[k] == last {
		return
	}
	if e.micro < int32(e.s.MicroBatches-1) && (!e.sharded(k) || e.rules[k] == concatenated) {
		return
	}
	stage := int(e.step.Chunk[e.home(k)]) % e.s.Pipeline
	p := e.g.Tensor(t).Producer
	b, bytes := &e.replicas[0].waiting[stage], e.gradientBytes(t)
	if e.ofExperts(p) {
		b = &e.replicas[0].waiting[e.s.Pipeline+stage]
		bytes = units.Bytes(ceil(int64(bytes)*e.expertShare(p), int64(e.s.Experts))) // in the mean
	}
	b.ks = append(b.ks, k)
	if b.bytes += bytes; b.bytes >= e.s.Bucket {
		e.reduceWaiting(b, stage)
	}
}

// reduce reduces the gradients that wait on a stage.
func (e *emitter) reduce(stage int) {
	for _, at := range []int{stage, e.s.Pipeline + stage} {
		e.reduceWaiting(&e.replicas[0].waiting[at], stage)
	}
}

// reduceWaiting reduces the gradients of a bucket of a stage.
func (e *emitter) reduceWaiting(b *bucket, stage int) {
	var dense []int
	for _, k := range b.ks {
		if e.rules[k] == concatenated {
			e.gatherRows(k, stage)
		} else {
			dense = append(dense, k)
		}
	}
	*b = bucket{}
	switch {
	case len(dense) == 0:
	case e.ofExperts(e.g.Tensor(e.grads[dense[0]]).Producer):
		e.reduceExperts(dense, stage)
	default:
		for t := range e.tensor {
			e.reduceBucket(Collective{Axis: DataAxis, Stage: stage, Ranks: e.s.Data}, dense, e.part(t))
		}
	}
}

// reduceExperts reduces gradients ks of experts, each among the replicas that have it.
func (e *emitter) reduceExperts(ks []int, stage int) {
	for t := range e.tensor {
		for at := range min(e.data, e.s.Experts) {
			rs := e.alike(t, at)
			var own []int
			for _, k := range ks {
				if e.has(rs[0], e.g.Tensor(e.grads[k]).Producer) {
					own = append(own, k)
				}
			}
			if len(own) > 0 {
				e.reduceBucket(Collective{Axis: ReplicaAxis, Stage: stage, Ranks: e.s.Data / e.s.Experts}, own, rs)
			}
		}
	}
}

// part returns the replicas of part t.
func (e *emitter) part(t int) (rs []*replica) {
	for _, r := range e.replicas {
		if r.t == t {
			rs = append(rs, r)
		}
	}
	return rs
}

// alike returns the replicas of part t that have the same experts as replica at.
func (e *emitter) alike(t, at int) (rs []*replica) {
	for _, r := range e.part(t) {
		if r.d%e.s.Experts == at {
			rs = append(rs, r)
		}
	}
	return rs
}

// reduceBucket reduces gradients ks among replicas rs as c says: all-reduced or scattered in place,
// or into a share of each where gradients are shared out.
func (e *emitter) reduceBucket(c Collective, ks []int, rs []*replica) {
	c.Kind = AllReduce
	if e.s.Sharding >= ShardOptimizer {
		c.Kind = ReduceScatter
	}
	for _, k := range ks {
		c.Bytes += e.gradientBytes(e.grads[k])
	}
	members := make([]member, len(rs))
	for q, r := range rs {
		m := member{rank: e.s.Rank(r.d, c.Stage, r.t)}
		for _, k := range ks {
			if e.sharded(k) {
				m.in = append(m.in, r.whole[k])
				m.outs = append(m.outs, graph.Tensor{DType: e.g.Tensor(e.grads[k]).DType, Bytes: units.Bytes(ceil(int64(e.gradientBytes(e.grads[k])), int64(c.Ranks)))})
			} else {
				m.wait = append(m.wait, e.b.TensorAt(r.whole[k]).Producer)
			}
		}
		members[q] = m
	}
	for q, id := range e.collective(c, "gradients", members) {
		for at, k := range ks {
			switch {
			case !e.sharded(k):
				rs[q].behind[k] = append(rs[q].behind[k], id)
			case e.s.MicroBatches > 1:
				e.accumulate(rs[q], k, e.b.Output(id, at))
			default:
				rs[q].whole[k] = e.b.Output(id, at)
			}
		}
	}
}

// gatherRows makes the rows of gradient k those of all replicas.
func (e *emitter) gatherRows(k, stage int) {
	x := e.m.Whole.Tensor(e.grads[k])
	c := Collective{Kind: AllGather, Axis: DataAxis, Stage: stage, Bytes: x.Bytes, Ranks: e.s.Data}
	for t := range e.tensor {
		rs := e.part(t)
		members := make([]member, len(rs))
		for q, r := range rs {
			members[q] = member{rank: e.s.Rank(r.d, stage, r.t), in: []graph.TensorID{r.whole[k]}, outs: []graph.Tensor{{DType: x.DType, Bytes: x.Bytes}}}
		}
		for q, id := range e.collective(c, "rows", members) {
			rs[q].whole[k] = e.b.Output(id, 0)
		}
	}
}

// gather makes the parameters of the unit that op i reads whole, where they are not yet.
func (e *emitter) gather(i graph.OpID, stage int, kind task) {
	for _, x := range e.g.Inputs(i) {
		if !e.weight[x] {
			continue
		}
		for t := range e.tensor {
			if !e.ofExperts(e.g.Tensor(x).Producer) {
				e.gatherUnit(Collective{Kind: AllGather, Axis: DataAxis, Stage: stage, Ranks: e.s.Data}, e.part(t), x, kind)
				continue
			}
			for at := range min(e.data, e.s.Experts) {
				if rs := e.alike(t, at); e.has(rs[0], i) {
					e.gatherUnit(Collective{Kind: AllGather, Axis: ReplicaAxis, Stage: stage, Ranks: e.s.Data / e.s.Experts}, rs, x, kind)
				}
			}
		}
	}
}

// gatherUnit is gather for replicas rs, of the unit of parameter x, of experts or not as it is.
func (e *emitter) gatherUnit(c Collective, rs []*replica, x graph.TensorID, kind task) {
	if _, ok := rs[0].gathered[x]; ok {
		return
	}
	p := e.g.Tensor(x).Producer
	var ts []graph.TensorID
	for _, t := range e.parameters(kind, e.units[p]) {
		q := e.g.Tensor(t).Producer
		if _, ok := rs[0].gathered[t]; !ok && e.ofExperts(q) == e.ofExperts(p) && e.has(rs[0], q) {
			ts = append(ts, t)
			c.Bytes += e.gradientBytes(t)
		}
	}
	members := make([]member, len(rs))
	for q, r := range rs {
		m := member{rank: e.s.Rank(r.d, c.Stage, r.t), wait: []graph.OpID{r.before[c.Stage]}}
		r.before[c.Stage] = r.lastCompute[c.Stage]
		for _, w := range ts {
			m.outs = append(m.outs, graph.Tensor{DType: e.g.Tensor(w).DType, Bytes: e.gradientBytes(w)})
		}
		members[q] = m
	}
	for q, id := range e.collective(c, "parameters", members) {
		for at, w := range ts {
			rs[q].gathered[w] = e.b.Output(id, at)
		}
	}
}

// parameters returns the weights of a unit that a kind of pass reads, ascending.
func (e *emitter) parameters(kind task, unit int32) []graph.TensorID {
	if e.reads == nil {
		e.reads = map[task]map[int32][]graph.TensorID{}
	}
	if e.reads[kind] == nil {
		by := map[int32][]graph.TensorID{}
		seen := map[graph.TensorID]bool{}
		for _, i := range e.lists[kind] {
			for _, t := range e.g.Inputs(i) {
				if e.weight[t] && !seen[t] {
					seen[t] = true
					u := e.units[e.g.Tensor(t).Producer]
					by[u] = append(by[u], t)
				}
			}
		}
		e.reads[kind] = by
	}
	return e.reads[kind][unit]
}

// gatherUpdated makes parameters whole again whose shares the replicas have updated. What
// nothing updates, as in inference, every replica has whole.
func (e *emitter) gatherUpdated() {
	if e.s.Data == 1 || e.s.Sharding == Replicated || e.s.Sharding == ShardAll {
		return
	}
	for stage := range e.s.Pipeline {
		for t := range e.tensor {
			e.gatherUpdates(Collective{Kind: AllGather, Axis: DataAxis, Stage: stage, Ranks: e.s.Data}, e.part(t), false)
			if e.mixtures == nil || e.s.Data == e.s.Experts {
				continue
			}
			for at := range min(e.data, e.s.Experts) {
				e.gatherUpdates(Collective{Kind: AllGather, Axis: ReplicaAxis, Stage: stage, Ranks: e.s.Data / e.s.Experts}, e.alike(t, at), true)
			}
		}
	}
}

// gatherUpdates is gatherUpdated for replicas rs of a stage, of their experts' parameters or of all
// others.
func (e *emitter) gatherUpdates(c Collective, rs []*replica, experts bool) {
	var ops []graph.OpID // updates that wait
	flush := func() {
		if c.Bytes == 0 {
			return
		}
		members := make([]member, len(rs))
		for q, r := range rs {
			members[q].rank = e.s.Rank(r.d, c.Stage, r.t)
			for _, u := range ops {
				members[q].wait = append(members[q].wait, r.once[u])
			}
		}
		e.collective(c, "updated", members)
		c.Bytes, ops = 0, nil
	}
	for i := range graph.OpID(e.g.NumOps()) {
		if o := e.g.Op(i); o.Params == 0 || int(e.step.Chunk[i])%e.s.Pipeline != c.Stage || e.ofExperts(i) != experts || !e.has(rs[0], i) {
			continue
		}
		t, updates := first(e.g, i), len(ops)
		for _, u := range e.g.Consumers(t) {
			if o := e.g.Op(u); o.Phase == graph.Update && (o.Kind.Class() == graph.ClassUpdate || o.Kind == "ScatterSub") { // which sparse SGD is
				ops = append(ops, u)
			}
		}
		if len(ops) == updates {
			continue
		}
		if c.Bytes += e.gradientBytes(t); c.Bytes >= e.s.Bucket {
			flush()
		}
	}
	flush()
}
