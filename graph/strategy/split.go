package strategy

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// Split says what tensor parallelism cuts: blocks of a product that is cut by columns of
// its weight, ops that work on each column (or head) alone, and a product that is cut by
// rows. It is found by structure, in the forward pass of one micro-batch:
//
//   - Products of one activation and a weight that read the same activation open a block
//     together (queries, keys and values; gate and up).
//   - What follows from their results, up to the next products with weights, is the
//     block, with products of other activations that it joins. It holds if all of it reads
//     nothing else but what is there once, what the samples hold and what is the same for all
//     heads, and all its results go to those products. Its batched products have one head of
//     keys and values for each group of queries; a rank has whole heads, never a part of the
//     samples, and ranks beyond those heads have copies (copies.go).
//   - Gradients follow what they are gradients of.
//
// Parts of a block's first results are partial sums nowhere; its last result is, and so is the
// gradient of its activation: both are all-reduced.
type Split struct {
	m *Model
	// Cut says of each tensor, [tensors], that every rank holds a T-th of it; Copied, of what
	// makes it, that no more parts than Heads are there.
	Cut []bool
	// Shared says of each op, [N], that every rank does a T-th of it, and holds a T-th of what
	// it holds.
	Shared []bool
	// Partial says of each tensor that ranks hold partial sums of it, which are
	// all-reduced before others read it.
	Partial []bool
	// Narrow says of partial sums that were cast to a wider type since they were made, and are reduced
	// in the narrower one, how many times as wide it is: 2 under autocast.
	Narrow map[graph.TensorID]int64
	// Moments are what ranks add up within the normalisation that gives a tensor.
	Moments map[graph.TensorID]units.Bytes
	// ByRows says of each op, [N], that every rank does a T-th of the rows of what it reads, and
	// Rows of each tensor, [tensors], that it has a T-th of its rows: a partial sum of which it
	// says so is reduce-scattered, others are all-reduced. Readers that do not work by rows
	// read it gathered.
	ByRows, Rows []bool
	// Summed says of each gradient of what is there once, [tensors], that every rank has it of
	// its rows alone: it is all-reduced before the update.
	Summed []bool
	// Statistics says of each op, [N], that ranks agree on the largest and the sum over all
	// columns, and on one of them, for each row.
	Statistics []bool
	lookup     []bool  // [N] of a table that is cut by rows
	output     []bool  // [N] product of an output layer that is cut by columns
	rows       []int64 // [tensors] of what is by rows or may be, else 0
	// Blocks is the number of blocks found.
	Blocks int
	// Count is the number of rows that sequences divide into: the greatest common divisor.
	Count int64
	// Width is the number by which all cut dimensions divide: the greatest common divisor.
	Width int64
	// Heads is what batched products have to divide, their heads of keys and values: the
	// greatest common divisor, 0 without such products.
	Heads int64
	// Queries are the heads of queries in batched products, likewise.
	Queries int64
	// Copied says of each op, [N], that it makes or holds heads of keys and values alone: more
	// ranks than Heads have copies.
	Copied []bool
	// mixed says of ops of which queries as well as keys and values are made how many columns are
	// whose, copiedOut of each output of such an op that it is keys or values.
	mixed     map[graph.OpID]columns
	copiedOut map[graph.TensorID]bool

	sampleless []bool // [N], as the function of that name has it

	trains bool // the step has a backward pass
	fused  bool // one product makes queries, keys and values, and columns are not told apart
}

// FindSplit returns what of m the split products of a strategy cut.
func FindSplit(m *Model, how Strategy) *Split {
	g := m.Micro
	n, t := g.NumOps(), g.NumTensors()
	s := &Split{m: m, Cut: make([]bool, t), Shared: make([]bool, n), Copied: make([]bool, n), Partial: make([]bool, t), Narrow: map[graph.TensorID]int64{}, Moments: map[graph.TensorID]units.Bytes{},
		mixed: map[graph.OpID]columns{}, copiedOut: map[graph.TensorID]bool{},
		sampleless: sampleless(m),
		ByRows:     make([]bool, n), Rows: make([]bool, t), Summed: make([]bool, t), Statistics: make([]bool, n), lookup: make([]bool, n), output: make([]bool, n), rows: make([]int64, t)}
	s.trains = Trains(m.Micro)
	closed := make([]bool, g.NumOps()) // products that end or begin a block
	openers := map[graph.TensorID][]graph.OpID{}
	var order []graph.TensorID
	for i := range graph.OpID(g.NumOps()) {
		if x, _, ok := s.linear(i); ok {
			if openers[x] == nil {
				order = append(order, x)
			}
			openers[x] = append(openers[x], i)
		}
	}
	for _, x := range order {
		s.block(openers[x], closed)
	}
	if how.Vocabulary {
		s.vocabulary(order, openers, closed)
	}
	s.postpone()
	s.holders()
	if how.Sequence {
		s.forwardRows()
	}
	s.backward(how.Sequence)
	s.updates()
	return s
}

// postpone lets partial sums that are added up, or handed on, be all-reduced once behind
// that: the results of a token's experts, say, and of the expert that all tokens share.
func (s *Split) postpone() {
	g := s.m.Micro
	for i := range graph.OpID(g.NumOps()) {
		o, in := g.Op(i), g.Inputs(i)
		switch {
		case o.Phase != graph.Forward || len(in) == 0:
			continue
		case o.Kind == "UnsortedSegmentSum", o.Kind.Class() == graph.ClassMeta:
			in = in[:1] // the others say which rows, or what shape
		case adds(o.Kind):
		default:
			continue
		}
		if slices.ContainsFunc(in, func(t graph.TensorID) bool { return !s.Partial[t] || !s.solely(t, i) }) {
			continue
		}
		for _, t := range in {
			s.Partial[t] = false
		}
		s.partial(i)
	}
}

// adds reports whether ops of a kind add tensors up: TensorFlow's AddN sums all gradients of a tensor
// at once, PyTorch two by two.
func adds(k graph.Kind) bool { return k == "Add" || k == "AddV2" || k == "AddN" }

// updates lets clipping follow the gradients that are cut.
func (s *Split) updates() {
	g := s.m.Micro
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Update || s.Shared[i] {
			continue
		}
		for _, x := range g.Inputs(i) {
			if !s.Cut[x] {
				continue
			}
			s.Shared[i] = true
			t, end := g.Outputs(i)
			for ; t < end; t++ {
				s.Cut[t] = s.Cut[t] || g.Tensor(t).Bytes == g.Tensor(x).Bytes
			}
		}
	}
}

// linear reports whether op i is a forward product of an activation, x, and a weight, w. Products of
// groups of rows are none: PyTorch, whose they are, has no parts of them.
func (s *Split) linear(i graph.OpID) (x, w graph.TensorID, ok bool) {
	o := s.m.Micro.Op(i)
	f := s.factors(i)
	if o.Phase != graph.Forward || o.GEMM.IsZero() || o.Kind.Class() != graph.ClassGEMM || o.Kind == "GroupedMatMul" || len(f) < 2 {
		return 0, 0, false
	}
	a, b := s.m.once[s.m.Micro.Tensor(f[0]).Producer], s.m.once[s.m.Micro.Tensor(f[1]).Producer]
	switch {
	case s.headwise(i):
		return 0, 0, false
	case !a && b:
		return f[0], f[1], true
	case a && !b:
		return f[1], f[0], true
	}
	return 0, 0, false
}

// factors returns what op i multiplies: its first two inputs, but the last two of a MatMul
// with three, PyTorch's addmm and baddbmm, which read first what is added.
func (s *Split) factors(i graph.OpID) []graph.TensorID { return factorsOf(s.m.Micro, i) }

// factorsOf is factors of an op of g.
func factorsOf(g *graph.Graph, i graph.OpID) []graph.TensorID {
	in := g.Inputs(i)
	if k := g.Op(i).Kind; len(in) == 3 && (k == "MatMul" || k == "BatchMatMulV2") {
		return in[1:]
	}
	return in
}

// holders cuts the weights of cut products, the vectors that ops of a block read, and what
// updates them.
func (s *Split) holders() {
	g := s.m.Micro
	groups := map[int32]bool{}
	var mark func(t graph.TensorID, i graph.OpID)
	mark = func(t graph.TensorID, i graph.OpID) { // a weight of op i
		if s.Cut[t] {
			return
		}
		s.Cut[t] = true
		p := g.Tensor(t).Producer
		s.Shared[p], s.Copied[p] = true, s.Copied[i]
		if c, ok := s.mixed[i]; ok {
			s.mixed[p] = c
		}
		if k := g.Op(p).Group; k > 0 {
			groups[k] = true
		}
		for _, x := range g.Inputs(p) {
			if g.Tensor(x).Bytes == g.Tensor(t).Bytes {
				mark(x, i)
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if !s.Shared[i] && !s.lookup[i] || s.m.once[i] {
			continue
		}
		if _, w, ok := s.linear(i); ok {
			mark(w, i)
			if !s.Cut[first(g, i)] { // the bias of a partial sum stays whole
				continue
			}
		}
		for _, t := range g.Inputs(i) {
			if s.headwise(i) && s.m.once[g.Tensor(t).Producer] {
				mark(t, i)
			}
		}
		if normalises(g.Op(i).Kind) && s.moments(i) == 0 { // its factors are the same for every head
			continue
		}
		if s.lookup[i] {
			mark(g.Inputs(i)[0], i)
			continue
		}
		for _, t := range g.Inputs(i) { // biases and factors: a vector along the columns that is trained
			if p := g.Tensor(t).Producer; s.m.once[p] && len(g.Tensor(t).Shape) == 1 && s.trained(p) {
				mark(t, i)
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) { // reads, slots and updates of the same variables
		if o := g.Op(i); o.Group > 0 && groups[o.Group] && s.m.once[i] {
			s.Shared[i] = true
			t, end := g.Outputs(i)
			for ; t < end; t++ {
				s.Cut[t] = true
			}
		}
	}
}

// trained reports whether op i is a trained variable or a view of one.
func (s *Split) trained(i graph.OpID) bool {
	g := s.m.Micro
	if g.Op(i).Params > 0 {
		return true
	}
	for _, t := range g.Inputs(i) {
		if g.Op(g.Tensor(t).Producer).Params > 0 {
			return true
		}
	}
	return false
}

// backward lets gradients follow: those of a block's inner ops and of its weights are
// cut, that of its activation is a partial sum.
func (s *Split) backward(sequence bool) {
	g := s.m.Micro
	again := make([]bool, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Phase != graph.Backward || s.m.once[i] {
			continue
		}
		f := o.Forward
		if again[i] = s.repeats(i, again); again[i] {
			s.follow(i, f)
			continue
		}
		in := g.Inputs(i)
		cutIn, partialIn, plainIn := false, false, false
		for _, t := range in {
			switch {
			case s.Cut[t]:
				cutIn = true
			case s.Partial[t]:
				partialIn = true
			case !s.m.once[g.Tensor(t).Producer] && g.Op(g.Tensor(t).Producer).Phase == graph.Backward:
				plainIn = true
			}
		}
		if f != graph.None && s.lookup[f] && s.ofTable(i, f) { // rows of other ranks' parts are left out
			s.Shared[i] = true
			s.cut(i)
			continue
		}
		if f != graph.None && s.Shared[f] {
			if x, _, ok := s.linear(f); ok && (cutIn || !s.handsOn(i)) {
				opens := !s.Cut[x]
				// A gradient of the weight reads the activation; that of the activation,
				// the weight.
				toActivation := !o.GEMM.IsZero() && !slices.Contains(in, x) && !s.reaches(i, x) && !s.readsAgain(i, x, again)
				s.Shared[i] = cutIn
				switch {
				case !cutIn:
				case opens && toActivation:
					s.partial(i)
				default:
					s.cut(i)
				}
				continue
			}
		}
		// Sums and views of gradients, ops within a block.
		switch {
		case partialIn && ofShape(o.Kind): // the same of a sum and of its parts
		case partialIn && !cutIn && !plainIn && (adds(o.Kind) || o.Kind.Class() == graph.ClassMeta || s.widens(i) > 1):
			s.partial(i) // sums of partial sums, reduced once
			s.narrow(i, in)
			for _, t := range in {
				if s.solely(t, i) {
					s.Partial[t] = false
				}
			}
		case cutIn:
			s.Shared[i] = true
			s.cut(i)
		case sequence:
			s.backwardRows(i)
		}
	}
	for t := range s.Partial { // a partial sum that only views and sums pass on is none to reduce
		if s.Partial[t] && s.Cut[t] {
			s.Partial[t] = false
		}
	}
	s.joinSums(again)
	s.scatter()
}

// repeats reports whether op i computes again what its forward op does: of the same
// tensors, or of those computed again.
func (s *Split) repeats(i graph.OpID, again []bool) bool {
	g := s.m.Micro
	f := g.Op(i).Forward
	if f == graph.None || g.Op(i).Kind != g.Op(f).Kind || len(g.Inputs(i)) != len(g.Inputs(f)) {
		return false
	}
	for k, t := range g.Inputs(i) {
		u := g.Inputs(f)[k]
		p := g.Tensor(t).Producer
		if t != u && !(again[p] && g.Op(p).Forward == g.Tensor(u).Producer) {
			return false
		}
	}
	return true
}

// readsAgain reports whether op i reads x computed again, or a view of that.
func (s *Split) readsAgain(i graph.OpID, x graph.TensorID, again []bool) bool {
	g := s.m.Micro
	is := func(t graph.TensorID) bool {
		p := g.Tensor(t).Producer
		return again[p] && g.Op(p).Forward == g.Tensor(x).Producer
	}
	for _, t := range g.Inputs(i) {
		if is(t) || slices.ContainsFunc(g.Inputs(g.Tensor(t).Producer), is) {
			return true
		}
	}
	return false
}

// follow gives op i, which computes again what f does, what f has.
func (s *Split) follow(i, f graph.OpID) {
	g := s.m.Micro
	s.Shared[i], s.ByRows[i], s.Statistics[i] = s.Shared[f], s.ByRows[f], s.Statistics[f]
	t, end := g.Outputs(i)
	for u := first(g, f); t < end; t, u = t+1, u+1 {
		s.Cut[t], s.Partial[t], s.Rows[t], s.rows[t] = s.Cut[u], s.Partial[u], s.Rows[u], s.rows[u]
	}
}

// reaches reports whether op i reads a view or a transpose of x.
func (s *Split) reaches(i graph.OpID, x graph.TensorID) bool {
	g := s.m.Micro
	for _, t := range g.Inputs(i) {
		for _, u := range g.Inputs(g.Tensor(t).Producer) {
			if u == x {
				return true
			}
		}
	}
	return false
}

// solely reports whether op i alone reads t.
func (s *Split) solely(t graph.TensorID, i graph.OpID) bool {
	c := s.m.Micro.Consumers(t)
	return len(c) == 1 && c[0] == i
}

func (s *Split) cut(i graph.OpID) {
	t, end := s.m.Micro.Outputs(i)
	for ; t < end; t++ {
		s.Cut[t] = true
	}
}

// handsOn reports whether op i reads a partial sum that no other op reads, as the gate of a gradient does.
func (s *Split) handsOn(i graph.OpID) bool {
	return slices.ContainsFunc(s.m.Micro.Inputs(i), func(t graph.TensorID) bool { return s.Partial[t] && s.solely(t, i) })
}

// ofShape reports whether an op reads of its operand the shape alone.
func ofShape(k graph.Kind) bool { return k == "Shape" || k == "Size" || k == "Rank" }

// partial makes the result of op i a partial sum, of as many rows as its product or what it
// reads has.
func (s *Split) partial(i graph.OpID) {
	g := s.m.Micro
	t := first(g, i)
	s.Partial[t] = true
	if x := g.Op(i).GEMM; !x.IsZero() {
		s.rows[t] = x.Batch * x.M
		return
	}
	for _, u := range g.Inputs(i) {
		s.rows[t] = max(s.rows[t], s.rows[u])
	}
	if shape := g.Tensor(t).Shape; len(shape) > 0 && !hasRows(shape, s.rows[t]) { // rows of segments are added up
		s.rows[t] = shape[0]
	}
}

// product returns the part of op i's product x, as g has it, that one of n ranks does.
func (s *Split) product(g *graph.Graph, i graph.OpID, x graph.GEMM, n int64) graph.GEMM {
	in := s.factors(i)
	if x.IsZero() || len(in) < 2 {
		return x
	}
	a, b, out := s.Cut[in[0]], s.Cut[in[1]], s.Cut[first(g, i)]
	switch {
	case a && b && out:
		heads := s.partOfTensor(in[1], n).den
		x.Batch, x.M = ceil(x.Batch, heads), ceil(x.M, n/heads) // queries of one head are rows
	case !out:
		x.K = ceil(x.K, n)
	case a == crossed(g, in, a, x):
		x.N = s.partOf(i, n).of(x.N)
	default:
		x.M = s.partOf(i, n).of(x.M)
	}
	return x
}

// crossed reports whether the operand that is cut, the first of two if a, gives the result's
// columns if it is the first or its rows if it is the second: a product of transposes.
func crossed(g *graph.Graph, in []graph.TensorID, a bool, x graph.GEMM) bool {
	t, own, other := in[1], x.N, x.M
	if a {
		t, own, other = in[0], x.M, x.N
	}
	n, err := g.Tensor(t).Shape.Elements()
	return err == nil && n != x.Batch*x.K*own && n == x.Batch*x.K*other
}

func ceil(x, n int64) int64 { return (x + n - 1) / n }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
