package strategy

import (
	"fmt"
	"slices"

	"placer/graph"
	"placer/units"
)

// Options say how Derive emits a step.
type Options struct {
	// Bounds are the first blocks of the chunks, [P*V], as Blocks.Cut returns them.
	Bounds []int
	// Fold emits the ranks of replica 0 and part 0 alone; see Step.Folded.
	Fold bool
	// One reports that an op of each rank stands for a collective where the step is not folded
	// either; nil: for none. Such ops do not wait for one another: ranks are alike.
	One func(Collective) bool
}

// Derive returns the step of m under s, whose stages are cut at the bounds of opt among
// blocks. The graphs of m must be of the batch that s asks for: Micro of one micro-batch,
// Whole of all Data*MicroBatches of them.
func Derive(m *Model, blocks *Blocks, s Strategy, opt Options) (*Step, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	chunks := s.Pipeline * s.Chunks
	if chunks == 1 {
		opt.Bounds = []int{0}
	}
	if len(opt.Bounds) != chunks {
		return nil, fmt.Errorf("%v: %d cuts for %d chunks", s, len(opt.Bounds), chunks)
	}
	e := &emitter{
		m: m, g: m.Micro, s: s, b: graph.NewBuilder(m.Micro.Name()), micro: -1,
		step:     &Step{Strategy: s, Folded: opt.Fold, Chunk: blocks.chunks(opt.Bounds), Bounds: opt.Bounds},
		block:    blocks.of,
		data:     s.Data,
		tensor:   s.Tensor,
		gradient: map[graph.TensorID]int{},
		one:      opt.One,
	}
	if opt.Fold {
		e.data, e.tensor = 1, 1
	}
	given := e.step.Chunk
	if s.Pipeline > 1 && s.Schedule != Free && s.Schedule != Unordered {
		var err error
		if e.untied, err = untie(m, e.step.Chunk, e.block, s.Pipeline); err != nil {
			return nil, err
		}
	}
	if x := e.untied; x != nil {
		m = x.m
		e.m, e.g, e.step.Chunk, e.block, e.norms = m, m.Micro, x.chunk, x.block, x.norms
	} else if n := findNorm(m); n != nil && s.Pipeline == 1 {
		e.norms = []graph.OpID{n.whole}
	}
	if s.Tensor > 1 {
		e.split = FindSplit(m, s)
		if err := e.split.check(int64(s.Tensor)); err != nil {
			return nil, err
		}
		if s.Vocabulary && !slices.Contains(e.split.Statistics, true) {
			return nil, fmt.Errorf("graph %s: no output layer leads to a cross entropy alone, so that its vocabulary could be split", m.Micro.Name())
		}
		if n := e.split.Count; s.Sequence && (n == 0 || n%int64(s.Tensor) != 0) {
			return nil, fmt.Errorf("graph %s: what is between its blocks has rows in multiples of %d, which %d ranks cannot share", m.Micro.Name(), n, s.Tensor)
		}
	}
	if s.Experts > 0 {
		if err := e.shareExperts(); err != nil {
			return nil, err
		}
	}
	e.prepare()
	e.grow()
	if err := e.emit(); err != nil {
		return nil, err
	}
	var err error
	if e.step.Graph, err = e.b.Build(); err != nil {
		return nil, err
	}
	e.reorder(e.b.Order())
	if e.untied != nil {
		e.step.Chunk = given
		for i, from := range e.step.From {
			if from != graph.None {
				e.step.From[i] = e.untied.origin[from]
			}
		}
	}
	return e.step, nil
}

// reorder gives the tables of the step the order of its graph.
func (e *emitter) reorder(order []graph.OpID) {
	x := e.step
	if slices.IsSorted(order) {
		return
	}
	rank, stream, from, micro, collective := slices.Clone(x.Rank), slices.Clone(x.Stream), slices.Clone(x.From), slices.Clone(x.Micro), slices.Clone(x.Collective)
	for to, i := range order {
		x.Rank[to], x.Stream[to], x.From[to], x.Micro[to], x.Collective[to] = rank[i], stream[i], from[i], micro[i], collective[i]
	}
}

// emitter builds the graph of a step.
type emitter struct {
	m        *Model
	g        *graph.Graph
	s        Strategy
	split    *Split       // nil without tensor parallelism
	mixtures *Mixtures    // nil without expert parallelism
	untied   *untied      // nil where no weight is of several stages
	norms    []graph.OpID // by which gradients are clipped, of each stage; none where ranks need not agree
	crossing map[graph.TensorID]crossing
	sent     map[crossing][]graph.TensorID
	routed   map[routed]bool       // what was sent
	done     []int                 // [N] one more than the micro-batch that an op was added for last
	one      func(Collective) bool // Options.One
	b        *graph.Builder
	step     *Step
	block    []int32
	// data and tensor are the ranks that are emitted of each axis.
	data, tensor int
	micro        int32 // under way, or -1

	lists    map[task][]graph.OpID // ops of each kind of pass and chunk, of micro-batch 0
	gradient map[graph.TensorID]int
	grads    []graph.TensorID
	rules    []rule
	units    []int32 // [N] unit whose parameters are gathered together
	weight   []bool  // [tensors] a parameter or a view of it, which ShardAll gathers
	reads    map[task]map[int32][]graph.TensorID
	edges    [][2]graph.OpID // control dependencies within the pass under way

	replicas []*replica
	group    int32 // co-location groups of the given graph
}

// replica is the state of what is emitted for one replica and part.
type replica struct {
	d, t  int
	once  []graph.OpID   // [N] op of what is there once
	pass  [][]graph.OpID // [M][N] ops of micro-batches
	after []map[graph.TensorID]graph.OpID
	// sum is the op that holds a gradient so far, whole the tensor that updates read and
	// behind what they must wait for, by gradient.
	sum    []graph.OpID
	pieces [][]graph.TensorID
	whole  []graph.TensorID
	behind [][]graph.OpID
	agreed map[graph.OpID]graph.OpID // what readers of a norm wait for
	// gathered are the parameters that are whole in the pass under way; before is, by
	// stage, [P], the op before the first reader of what was gathered last, and
	// lastCompute the op added last.
	gathered map[graph.TensorID]graph.TensorID
	// scattered are the rank's rows of partial sums, by micro-batch; rows is, in the pass under
	// way, what was gathered of all ranks' rows.
	scattered []map[graph.TensorID]graph.TensorID
	rows      map[graph.TensorID]graph.TensorID
	routed    []map[graph.TensorID]graph.TensorID // [M] rows sent to experts or back
	// gatheredTokens are the keys and values that the op under way reads of all tokens; ownTokens are, by
	// micro-batch, [M], the gradients of the rank's own.
	gatheredTokens      map[graph.TensorID]graph.TensorID
	ownTokens           []map[graph.TensorID]graph.TensorID
	before, lastCompute []graph.OpID
	waiting             []bucket // [2P] gradients to be reduced: of all replicas, then of those that have the same experts
}

// bucket is what is reduced at once.
type bucket struct {
	ks    []int       // gradients
	bytes units.Bytes // of a rank
}

// absent stands for an op that is not there, or not yet.
const absent = graph.OpID(-1)

func (e *emitter) prepare() {
	g := e.g
	e.lists = map[task][]graph.OpID{}
	for i := range graph.OpID(g.NumOps()) {
		e.group = max(e.group, g.Op(i).Group)
		if !e.m.once[i] {
			k := task{chunk: int(e.step.Chunk[i]), backward: g.Op(i).Phase == graph.Backward}
			e.lists[k] = append(e.lists[k], i)
		}
	}
	e.grads = e.m.gradients()
	for k, t := range e.grads {
		e.gradient[t] = k
		e.rules = append(e.rules, e.m.ruleOf(t))
	}
	if e.s.Sharding == ShardAll && e.s.Data > 1 {
		e.findWeights()
	}
	for d := range e.data {
		for t := range e.tensor {
			r := &replica{d: d, t: t, agreed: map[graph.OpID]graph.OpID{}, once: none(g.NumOps()), pass: make([][]graph.OpID, e.s.MicroBatches), after: make([]map[graph.TensorID]graph.OpID, e.s.MicroBatches), scattered: make([]map[graph.TensorID]graph.TensorID, e.s.MicroBatches), routed: make([]map[graph.TensorID]graph.TensorID, e.s.MicroBatches), ownTokens: make([]map[graph.TensorID]graph.TensorID, e.s.MicroBatches),
				sum: none(len(e.grads)), pieces: make([][]graph.TensorID, len(e.grads)), whole: make([]graph.TensorID, len(e.grads)), behind: make([][]graph.OpID, len(e.grads)),
				lastCompute: none(e.s.Pipeline), before: none(e.s.Pipeline), waiting: make([]bucket, 2*e.s.Pipeline)}
			for k := range r.whole {
				r.whole[k] = -1
			}
			e.replicas = append(e.replicas, r)
		}
	}
}

// grow makes room for about as many ops as there will be without communication.
func (e *emitter) grow() {
	pass := 0
	for i := range e.m.once {
		if !e.m.once[i] {
			pass++
		}
	}
	passes := e.s.MicroBatches * len(e.replicas)
	ops := e.g.NumOps()*len(e.replicas) + pass*passes
	if e.s.MicroBatches > 1 {
		ops += len(e.grads) * passes
	}
	ops += ops / 8
	e.b.Grow(ops, ops*e.g.NumTensors()/max(1, e.g.NumOps()))
	x := e.step
	x.Rank, x.Stream, x.From, x.Micro, x.Collective = slices.Grow(x.Rank, ops), slices.Grow(x.Stream, ops), slices.Grow(x.From, ops), slices.Grow(x.Micro, ops), slices.Grow(x.Collective, ops)
}

func none(n int) []graph.OpID {
	s := make([]graph.OpID, n)
	for i := range s {
		s[i] = absent
	}
	return s
}

// findWeights finds what ShardAll gathers: parameters and their views, by layer, or by
// block where there are no layers.
func (e *emitter) findWeights() {
	g := e.g
	e.weight = make([]bool, g.NumTensors())
	e.units = e.block
	for i := range graph.OpID(g.NumOps()) {
		if !e.m.once[i] || g.Op(i).Phase == graph.Update || e.copiesOf(i) == 1 {
			continue
		}
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			e.weight[t] = g.Op(i).Params > 0
			for _, x := range g.Inputs(i) {
				e.weight[t] = e.weight[t] || e.weight[x] && g.Tensor(t).Bytes == g.Tensor(x).Bytes && g.Tensor(t).Resident
			}
		}
	}
}

// emit adds everything, in the order of the schedule.
func (e *emitter) emit() error {
	for i := range graph.OpID(e.g.NumOps()) {
		if e.m.once[i] && e.g.Op(i).Phase != graph.Update {
			e.onceOp(i)
		}
	}
	e.buffers()
	gates := map[int]*gate{} // by stage
	for _, t := range e.s.sequence() {
		e.pass(t, gates)
	}
	e.micro = -1
	for p := range e.s.Pipeline {
		e.reduce(p)
	}
	e.reduceTied()
	for _, i := range e.updates() {
		e.onceOp(i)
		if n := len(e.norms); n > 0 && i == e.norms[n-1] {
			e.reduceNorm()
		}
	}
	e.gatherUpdated()
	return nil
}

// updates returns the ops of the update, the norms first and each other right behind what it alone
// needs: a clipped gradient is used as soon as it is there, so that few are held.
func (e *emitter) updates() (order []graph.OpID) {
	seen := make([]bool, e.g.NumOps())
	var visit func(i graph.OpID)
	visit = func(i graph.OpID) {
		if seen[i] || e.g.Op(i).Phase != graph.Update {
			return
		}
		seen[i] = true
		for p := range e.g.Predecessors(i) {
			visit(p)
		}
		order = append(order, i)
	}
	for _, i := range e.norms {
		visit(i)
	}
	for _, apply := range []bool{true, false} {
		for i := range graph.OpID(e.g.NumOps()) {
			if !apply || e.g.Op(i).Kind.Class() == graph.ClassUpdate {
				visit(i)
			}
		}
	}
	return order
}

// rank returns the rank of op i of replica r.
func (e *emitter) rank(r *replica, i graph.OpID) int {
	return e.s.Rank(r.d, int(e.step.Chunk[i])%e.s.Pipeline, r.t)
}

// add adds an op to a rank.
func (e *emitter) add(o graph.Op, rank int, from graph.OpID, micro int32, in []graph.TensorID, outs ...graph.Tensor) graph.OpID {
	id := e.b.Op(o, in, outs...)
	x := e.step
	x.Rank, x.Stream, x.From, x.Micro, x.Collective = append(x.Rank, int32(rank)), append(x.Stream, false), append(x.From, from), append(x.Micro, micro), append(x.Collective, -1)
	return id
}

func (e *emitter) wait(before, after graph.OpID) {
	if before != absent {
		e.b.Control(before, after)
	}
}

// name is the name of a copy of op i.
func (e *emitter) name(r *replica, base string) string {
	prefix := ""
	if len(e.replicas) > 1 {
		prefix = fmt.Sprintf("rank%d.%d/", r.d, r.t)
	}
	if e.micro >= 0 && e.s.MicroBatches > 1 {
		prefix += fmt.Sprintf("micro%d/", e.micro)
	}
	return prefix + base
}

// outputs returns the tensors that a copy of op i of g makes.
func (e *emitter) outputs(g *graph.Graph, i graph.OpID, share int64) []graph.Tensor {
	t, end := g.Outputs(i)
	outs := make([]graph.Tensor, 0, end-t)
	for ; t < end; t++ {
		x := *g.Tensor(t)
		part := fraction{1, share}
		if e.split != nil {
			part = e.split.partOfTensor(t, int64(e.s.Tensor)).over(share)
		}
		if part.num < part.den {
			x.Shape, x.Bytes = nil, units.Bytes(part.of(int64(x.Bytes)))
		}
		outs = append(outs, x)
	}
	return outs
}

// scaled returns op i of g as one rank has it: a share-th of what it holds and does.
func (e *emitter) scaled(g *graph.Graph, i graph.OpID, share int64) graph.Op {
	o := *g.Op(i)
	part := fraction{1, share}
	if e.split != nil && (e.split.Shared[i] || e.split.ByRows[i]) {
		part = e.split.partOf(i, int64(e.s.Tensor)).over(share)
		if o.Phase != graph.Update {
			o.GEMM = e.split.product(g, i, o.GEMM, int64(e.s.Tensor))
		}
	}
	if o.Phase == graph.Update && !o.GEMM.IsZero() { // products of a rule, such as Muon's
		o.GEMM.M = max(1, part.of(o.GEMM.M))
	}
	if !o.GEMM.IsZero() {
		o.GEMM.Batch = ceil(o.GEMM.Batch, e.expertShare(i))
	}
	if part.num < part.den {
		o.FLOPs = o.FLOPs * units.FLOPs(part.num) / units.FLOPs(part.den)
		o.Bytes = units.Bytes(part.of(int64(o.Bytes)))
		o.Resident = units.Bytes(part.of(int64(o.Resident)))
		o.Workspace = units.Bytes(part.of(int64(o.Workspace)))
		o.Params = part.of(o.Params)
	}
	return o
}
