package strategy

import (
	"fmt"
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

// untying builds one of the graphs.
type untying struct {
	*untied
	g      *graph.Graph
	b      *graph.Builder
	home   []graph.OpID                              // [N] op on its own stage
	at     []map[int]graph.OpID                      // [N] its copies, by stage
	local  map[graph.TensorID]map[int]graph.TensorID // what each stage has of a tied gradient
	of     []graph.OpID
	placed []place
	waits  [][2]graph.OpID
	groups int32
}

func (u *untying) add(of graph.OpID, at place, o graph.Op, in []graph.TensorID, outs ...graph.Tensor) graph.OpID {
	u.of, u.placed = append(u.of, of), append(u.placed, at)
	return u.b.Op(o, in, outs...)
}

// op adds op i, and its copies.
func (u *untying) op(i graph.OpID) {
	if u.dropped[i] {
		for _, t := range u.order {
			if u.g.Tensor(t).Producer == i {
				u.sum(t)
			}
		}
		return
	}
	u.home[i] = u.copy(i, u.stageOf(i), place{chunk: u.originalChunk[i], block: u.originalBlock[i]}, "", 0)
	u.control(i, u.home[i], u.stageOf(i))
	if u.copies[i] == nil {
		return
	}
	u.at[i] = map[int]graph.OpID{}
	for _, stage := range slices.Sorted(maps.Keys(u.copies[i])) {
		id := u.copy(i, stage, u.copies[i][stage], fmt.Sprintf("stage%d/", stage), u.groups*int32(1+stage))
		u.at[i][stage] = id
		u.control(i, id, stage)
	}
}

// copy adds op i for a stage.
func (u *untying) copy(i graph.OpID, stage int, at place, prefix string, group int32) graph.OpID {
	o := *u.g.Op(i)
	o.Name = prefix + o.Name
	if o.Group > 0 {
		o.Group += group
	}
	if o.Forward != graph.None {
		o.Forward = u.home[o.Forward]
	}
	in := make([]graph.TensorID, 0, len(u.g.Inputs(i)))
	for _, t := range u.g.Inputs(i) {
		if p := u.g.Tensor(t).Producer; u.norm != nil && u.norm.chain[i] && u.norm.of[p] && u.stageOf(p) != stage {
			continue // it is in that stage's norm
		}
		in = append(in, u.input(t, stage))
	}
	var outs []graph.Tensor
	for t, end := u.g.Outputs(i); t < end; t++ {
		outs = append(outs, *u.g.Tensor(t))
	}
	return u.add(i, at, o, in, outs...)
}

// input is what an op on a stage reads of tensor t.
func (u *untying) input(t graph.TensorID, stage int) graph.TensorID {
	p := u.g.Tensor(t).Producer
	if by, ok := u.local[t]; ok {
		if l, ok := by[stage]; ok {
			return l
		}
		return by[u.stageOf(p)]
	}
	id := u.home[p]
	if c, ok := u.at[p][stage]; ok {
		id = c
	}
	return u.b.Output(id, int(t-first(u.g, p)))
}

// control has op id, a copy of op i for a stage, wait for what op i waits for there.
func (u *untying) control(i, id graph.OpID, stage int) {
	for _, c := range u.g.Control(i) {
		switch at, ok := u.at[c][stage]; {
		case u.dropped[c]:
		case ok:
			u.waits = append(u.waits, [2]graph.OpID{at, id})
		case u.copies[i] != nil && !u.given.once[c] && u.stageOf(c) != stage && u.holds(i, u.stageOf(c)):
			// of the weight there, which waits itself
		default:
			u.waits = append(u.waits, [2]graph.OpID{u.home[c], id})
		}
	}
}

// holds reports whether there is a copy of op i on a stage, or itself.
func (u *untying) holds(i graph.OpID, stage int) bool {
	_, ok := u.copies[i][stage]
	return ok || u.stageOf(i) == stage
}

// sum adds up what each stage has of tied gradient t.
func (u *untying) sum(t graph.TensorID) {
	s := u.sums[t]
	by := map[int]graph.TensorID{}
	for _, stage := range slices.Sorted(maps.Keys(s.parts)) {
		parts := s.parts[stage]
		prefix := fmt.Sprintf("stage%d/", stage)
		last := u.g.Tensor(parts[0]).Producer
		at := place{chunk: u.originalChunk[last], block: u.originalBlock[last]}
		whole := u.input(parts[0], stage)
		for k, part := range parts[1:] {
			if p := u.g.Tensor(part).Producer; u.originalBlock[p] < at.block { // the backward pass gets there last
				at = place{chunk: u.originalChunk[p], block: u.originalBlock[p]}
			}
			x := u.g.Tensor(part)
			o := graph.Op{Name: fmt.Sprintf("%s%s/%d", prefix, u.g.Op(s.root).Name, k), Kind: "AddV2", Phase: graph.Backward, DType: x.DType, FLOPs: units.FLOPs(int64(x.Bytes) / x.DType.Size()), Bytes: 3 * x.Bytes, Layer: u.g.Op(s.root).Layer, Module: u.g.Op(s.root).Module, Forward: graph.None}
			id := u.add(s.root, at, o, []graph.TensorID{whole, u.input(part, stage)}, graph.Tensor{DType: x.DType, Shape: slices.Clone(x.Shape), Bytes: x.Bytes})
			whole = u.b.Output(id, 0)
		}
		for _, i := range slices.Backward(s.unary) {
			o := *u.g.Op(i)
			o.Name, o.Forward, o.Group = prefix+o.Name, graph.None, 0
			in := []graph.TensorID{whole}
			for _, r := range u.g.Inputs(i)[1:] {
				in = append(in, u.input(r, stage))
			}
			id := u.add(i, at, o, in, *u.g.Tensor(first(u.g, i)))
			whole = u.b.Output(id, 0)
		}
		by[stage] = whole
	}
	u.local[t] = by
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
