package strategy

import (
	"maps"
	"math/bits"
	"slices"

	"placer/graph"
	"placer/units"
)

// A weight that several stages of a pipeline read, as a table of embeddings that is also the output
// layer, is on each of them, with its optimizer's state and its gradient. What stages have of the
// gradient is all-reduced among them once a step, behind what replicas reduce, and each makes the
// same update (Megatron-LM: Narayanan et al., SC 2021, and its _allreduce_embedding_grads;
// DeepSpeed's TiedLayerSpec). A weight whose gradient is no sum of what its stages have stays on the
// first of them: one whose gradient lists rows, say.

// untied is a model with such weights, and with the norm that clips gradients, once for each stage.
type untied struct {
	m             *Model
	chunk, block  []int32      // [N']
	origin        []graph.OpID // [N'] op of the given model that each op is, or stands for
	stages        []uint64     // of each tied gradient: its stages, as bits
	gradients     [][]graph.TensorID
	given         *Model
	stageOf       func(graph.OpID) int
	readers       []map[int]place        // [N] of what is there once: by stage, the first reader
	copies        []map[int]place        // [N] where an op is besides its own stage, nil for nowhere
	sums          map[graph.TensorID]sum // gradients of tied weights, as they were
	dropped       []bool                 // [N] ops that such sums are made of
	order         []graph.TensorID       // keys of sums, in order
	norm          *norm                  // by which gradients are clipped, nil where stages do not share it
	norms         []graph.OpID           // it on each stage, in the untied model
	originalChunk []int32
	originalBlock []int32
}

// place is a chunk and a block in it.
type place struct {
	chunk, block int32
	forward      bool // of readers: some are of the forward pass
}

// sum is a gradient as what each stage has of it.
type sum struct {
	parts map[int][]graph.TensorID // by stage
	root  graph.OpID
	unary []graph.OpID // ops behind the additions, the last first
}

// untie returns m, whose ops are in chunks and blocks, [N], of a pipeline of p stages, with a copy of
// tied weights on each stage that reads them, and of the norm of gradients on each; nil where there is
// neither.
func untie(m *Model, chunk, block []int32, p int) (*untied, error) {
	x := &untied{given: m, originalChunk: chunk, originalBlock: block, stageOf: func(i graph.OpID) int { return int(chunk[i]) % p }}
	n := m.Micro.NumOps()
	x.readers, x.copies, x.dropped, x.sums = make([]map[int]place, n), make([]map[int]place, n), make([]bool, n), map[graph.TensorID]sum{}
	x.findReaders()
	some := false
	for i := range graph.OpID(n) {
		if m.once[i] && m.Micro.Op(i).Params > 0 {
			some = x.tie(i) || some
		}
	}
	if some = x.clip(p) || some; !some {
		return nil, nil
	}
	return x, x.build()
}

// copies reports whether an op makes another form of what it reads first: a view, a cast.
func copies(o *graph.Op) bool {
	return o.Kind.Class() == graph.ClassMeta || o.Kind == "Cast" || o.Kind == "Transpose"
}

// findReaders finds, for what is there once but updates, the first op of a pass on each stage that
// reads it, a view of it or a cast.
func (x *untied) findReaders() {
	m, g := x.given, x.given.Micro
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		if !m.once[i] || g.Op(i).Phase == graph.Update {
			continue
		}
		by := map[int]place{}
		note := func(stage int, at place) {
			was, ok := by[stage]
			at.forward = at.forward || ok && was.forward
			if ok && was.block < at.block {
				at.chunk, at.block = was.chunk, was.block
			}
			by[stage] = at
		}
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				if !m.once[v] {
					note(x.stageOf(v), place{x.originalChunk[v], x.originalBlock[v], g.Op(v).Phase == graph.Forward})
				}
				if copies(g.Op(v)) {
					for stage, at := range x.readers[v] {
						note(stage, at)
					}
				}
			}
		}
		x.readers[i] = by
	}
}

// tie gives each stage whose forward pass reads weight w its own, and reports whether several do and can.
func (x *untied) tie(w graph.OpID) bool {
	g, home := x.given.Micro, x.stageOf(w)
	at := map[int]place{}
	for stage, p := range x.readers[w] {
		if stage != home {
			at[stage] = p
			if !p.forward { // such as the gradient of a penalty on weights, which any stage could compute of its own
				return false
			}
		}
	}
	if len(at) == 0 {
		return false
	}
	own, ok := x.updated(w)
	if !ok {
		return false
	}
	sums := map[graph.TensorID]sum{}
	for _, t := range x.given.gradients() {
		if !slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return own[v] }) {
			continue
		}
		s, ok := x.sumOf(t)
		if !ok || x.given.ruleOf(t) != summed || len(s.parts) != len(at)+1 || len(s.parts[home]) == 0 {
			return false
		}
		for stage := range s.parts {
			if _, reads := at[stage]; !reads && stage != home {
				return false
			}
		}
		sums[t] = s
	}
	derived := make([]bool, g.NumOps())
	derived[w] = true
	for i := range graph.OpID(g.NumOps()) {
		if x.readers[i] != nil && copies(g.Op(i)) {
			for p := range g.Predecessors(i) {
				derived[i] = derived[i] || derived[p]
			}
		}
		switch {
		case i == w || own[i]:
			x.copies[i] = at
		case derived[i]: // where they are read
			for stage, p := range x.readers[i] {
				if _, ok := at[stage]; ok && stage != x.stageOf(i) {
					if x.copies[i] == nil {
						x.copies[i] = map[int]place{}
					}
					x.copies[i][stage] = p
				}
			}
		}
	}
	for t, s := range sums {
		x.sums[t] = s
		x.order = append(x.order, t)
		x.drop(g.Tensor(t).Producer, s)
	}
	slices.Sort(x.order)
	return true
}

// updated returns what updates weight w: its group's updates and state, and what only these read, as
// the product that clips its gradient. It is not ok where the group has other weights.
func (x *untied) updated(w graph.OpID) (own map[graph.OpID]bool, ok bool) {
	m, g := x.given, x.given.Micro
	own = map[graph.OpID]bool{}
	group := g.Op(w).Group
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if i != w && group > 0 && o.Group == group && o.Params > 0 {
			return nil, false
		}
		if m.once[i] && (o.Phase == graph.Update || m.ofUpdates(i)) && group > 0 && o.Group == group {
			own[i] = true
		}
	}
	for _, v := range g.Consumers(first(g, w)) {
		if g.Op(v).Phase == graph.Update {
			own[v] = true
		}
	}
	for i := graph.OpID(g.NumOps()) - 1; i >= 0; i-- {
		if own[i] || !m.once[i] || g.Op(i).Params > 0 || g.Op(i).Phase != graph.Update && !m.ofUpdates(i) {
			continue
		}
		all, some := true, false
		for t, end := g.Outputs(i); t < end; t++ {
			for _, v := range g.Consumers(t) {
				all, some = all && own[v], true
			}
		}
		if all && some {
			own[i] = true
		}
	}
	return own, true
}

// sumOf returns gradient t as what stages have of it, not ok where it is of one.
func (x *untied) sumOf(t graph.TensorID) (s sum, ok bool) {
	s = sum{parts: map[int][]graph.TensorID{}, root: x.given.Micro.Tensor(t).Producer}
	g := x.given.Micro
	for {
		i := g.Tensor(t).Producer
		if adds(g.Op(i).Kind) {
			break
		}
		in := g.Inputs(i)
		if g.Op(i).Phase != graph.Backward || !copies(g.Op(i)) || len(in) == 0 || x.given.once[g.Tensor(in[0]).Producer] || !x.solely(in[0], i) {
			return s, false
		}
		s.unary = append(s.unary, i)
		t = in[0]
	}
	x.collect(t, s.parts)
	return s, len(s.parts) > 1
}

// collect adds the summands of gradient t to parts, by the stage that makes them.
func (x *untied) collect(t graph.TensorID, parts map[int][]graph.TensorID) {
	g := x.given.Micro
	i := g.Tensor(t).Producer
	for _, u := range g.Inputs(i) {
		p := g.Tensor(u).Producer
		if g.Op(p).Phase == graph.Backward && adds(g.Op(p).Kind) && !x.given.once[p] && x.solely(u, i) {
			x.collect(u, parts)
			continue
		}
		parts[x.stageOf(p)] = append(parts[x.stageOf(p)], u)
	}
}

// solely reports whether op i alone reads tensor t, the only one of its op.
func (x *untied) solely(t graph.TensorID, i graph.OpID) bool {
	g := x.given.Micro
	from, end := g.Outputs(g.Tensor(t).Producer)
	for _, v := range g.Consumers(t) {
		if v != i {
			return false
		}
	}
	return end == from+1
}

// drop leaves out op i of sum s, and the additions before it.
func (x *untied) drop(i graph.OpID, s sum) {
	g := x.given.Micro
	x.dropped[i] = true
	parts := map[graph.TensorID]bool{}
	for _, ts := range s.parts {
		for _, t := range ts {
			parts[t] = true
		}
	}
	for _, t := range g.Inputs(i) {
		if !parts[t] && !x.given.once[g.Tensor(t).Producer] {
			x.drop(g.Tensor(t).Producer, s)
		}
	}
}

// build makes the model.
func (x *untied) build() error {
	micro, err := x.graph(x.given.Micro, true)
	if err != nil {
		return err
	}
	whole, err := x.graph(x.given.Whole, false)
	if err != nil {
		return err
	}
	state := make([]bool, len(x.origin))
	for i, of := range x.origin {
		state[i] = x.given.state[of]
	}
	if x.m, err = NewModel(micro, whole, state); err != nil {
		return err
	}
	if x.given.Joint != nil {
		x.m.Joint, err = x.graph(x.given.Joint, false)
	}
	return err
}

// graph returns g, one of the given model's, untied. first says that it is the one that tables are of.
func (x *untied) graph(g *graph.Graph, first bool) (*graph.Graph, error) {
	u := &untying{untied: x, g: g, b: graph.NewBuilder(g.Name()), home: none(g.NumOps()), at: make([]map[int]graph.OpID, g.NumOps()), local: map[graph.TensorID]map[int]graph.TensorID{}}
	u.b.Grow(g.NumOps(), g.NumTensors())
	for i := range graph.OpID(g.NumOps()) {
		u.groups = max(u.groups, g.Op(i).Group)
	}
	for i := range graph.OpID(g.NumOps()) {
		u.op(i)
	}
	for _, c := range u.waits {
		u.b.Control(c[0], c[1])
	}
	out, err := u.b.Build()
	if err != nil || !first {
		return out, err
	}
	rank := make([]graph.OpID, len(u.of))
	for to, i := range u.b.Order() {
		rank[i] = graph.OpID(to)
		x.origin = append(x.origin, u.of[i])
		x.chunk, x.block = append(x.chunk, u.placed[i].chunk), append(x.block, u.placed[i].block)
	}
	if x.norm != nil {
		at := maps.Clone(u.at[x.norm.whole])
		at[x.stageOf(x.norm.whole)] = u.home[x.norm.whole]
		for _, stage := range slices.Sorted(maps.Keys(at)) {
			x.norms = append(x.norms, rank[at[stage]])
		}
	}
	for _, t := range x.order {
		var ts []graph.TensorID
		stages := uint64(0)
		for _, stage := range slices.Sorted(maps.Keys(u.local[t])) {
			l := u.local[t][stage]
			i := u.b.TensorAt(l).Producer
			from, _ := u.b.OutputsAt(i)
			at, _ := out.Outputs(rank[i])
			ts, stages = append(ts, at+l-from), stages|1<<stage
		}
		x.gradients, x.stages = append(x.gradients, ts), append(x.stages, stages)
	}
	return out, nil
}

// reduceTied all-reduces the gradients of tied weights among their stages.
func (e *emitter) reduceTied() {
	if e.untied == nil {
		return
	}
	for at, ts := range e.untied.gradients {
		c := Collective{Kind: AllReduce, Axis: StageAxis, Stages: e.untied.stages[at], Ranks: len(ts)}
		c.Stage = bits.TrailingZeros64(c.Stages)
		ks := make([]int, len(ts))
		for q, t := range ts {
			ks[q] = e.gradient[t]
			bytes := e.gradientBytes(t)
			if n := e.among(ks[q]); n > 1 && e.s.Sharding >= ShardOptimizer {
				bytes = units.Bytes(ceil(int64(bytes), int64(n)))
			}
			c.Bytes = max(c.Bytes, bytes)
		}
		for _, r := range e.replicas {
			members := make([]member, len(ks))
			for q, k := range ks {
				members[q] = member{rank: e.rank(r, e.home(k)), wait: append([]graph.OpID{e.b.TensorAt(r.whole[k]).Producer}, r.behind[k]...)}
			}
			for q := range members {
				for p := range members {
					if p != q {
						members[q].others = append(members[q].others, members[p].wait...)
					}
				}
			}
			for q, id := range e.collective(c, "tied gradients", members) {
				r.behind[ks[q]] = append(r.behind[ks[q]], id)
			}
		}
	}
}
