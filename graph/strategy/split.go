package strategy

import (
	"slices"

	"placer/graph"
)

// Split says what tensor parallelism cuts: blocks of a product that is cut by columns of
// its weight, ops that work on each column (or head) alone, and a product that is cut by
// rows. It is found by structure, in the forward pass of one micro-batch:
//
//   - Products of one activation and a weight that read the same activation open a block
//     together (queries, keys and values; gate and up).
//   - What follows from their results, up to the next products with weights, is the
//     block. It holds if all of it reads nothing else but what is there once, no op of it
//     normalises over all columns, and all its results go to those products. Its batched
//     products have one head of keys and values for each group of queries; a rank has whole
//     heads, never a part of the samples.
//   - Gradients follow what they are gradients of.
//
// Parts of a block's first results are partial sums nowhere; its last result is, and so is the
// gradient of its activation: both are all-reduced.
type Split struct {
	m *Model
	// Cut says of each tensor, [tensors], that every rank holds a T-th of it.
	Cut []bool
	// Shared says of each op, [N], that every rank does a T-th of it; Hold, that it holds
	// a T-th of what it holds.
	Shared []bool
	// Partial says of each tensor that ranks hold partial sums of it, which are
	// all-reduced before others read it.
	Partial []bool
	// Blocks is the number of blocks found.
	Blocks int
	// Width is the number by which all cut dimensions divide: the greatest common divisor.
	Width int64
	// Heads is what batched products have to divide, their heads of keys and values: the
	// greatest common divisor, 0 without such products. Width divides it.
	Heads int64
}

// FindSplit returns what of m can be cut.
func FindSplit(m *Model) *Split {
	g := m.Micro
	s := &Split{m: m, Cut: make([]bool, g.NumTensors()), Shared: make([]bool, g.NumOps()), Partial: make([]bool, g.NumTensors())}
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
	s.holders()
	s.backward()
	s.updates()
	return s
}

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

// linear reports whether op i is a forward product of an activation, x, and a weight, w.
func (s *Split) linear(i graph.OpID) (x, w graph.TensorID, ok bool) {
	g := s.m.Micro
	o := g.Op(i)
	in := g.Inputs(i)
	if o.Phase != graph.Forward || o.GEMM.IsZero() || o.Kind.Class() != graph.ClassGEMM || len(in) < 2 {
		return 0, 0, false
	}
	a, b := s.m.once[g.Tensor(in[0]).Producer], s.m.once[g.Tensor(in[1]).Producer]
	switch {
	case !a && b:
		return in[0], in[1], true
	case a && !b:
		return in[1], in[0], true
	}
	return 0, 0, false
}

// block adds the block that products open, if there is one: all of them, or else the first
// alone that opens one by itself.
func (s *Split) block(open []graph.OpID, closed []bool) {
	if s.try(open, closed) || len(open) == 1 {
		return
	}
	for _, i := range open {
		s.try([]graph.OpID{i}, closed)
	}
}

func (s *Split) try(open []graph.OpID, closed []bool) bool {
	g := s.m.Micro
	inside := map[graph.TensorID]bool{}
	var ops, ends []graph.OpID
	width, count := int64(0), s.Heads
	for _, i := range open {
		if closed[i] {
			return false
		}
		n := g.Op(i).GEMM.N
		width = gcd(width, n)
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			inside[t] = true
		}
	}
	seen := map[graph.OpID]bool{}
	queue := slices.Clone(open)
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			for _, v := range g.Consumers(t) {
				if g.Op(v).Phase != graph.Forward || seen[v] {
					continue
				}
				seen[v] = true
				if x, _, ok := s.linear(v); ok {
					if !inside[x] || closed[v] {
						return false
					}
					ends = append(ends, v)
					width = gcd(width, g.Op(v).GEMM.K)
					continue
				}
				if !s.local(v) && !s.writes(v) || len(ops) > 4096 {
					return false
				}
				ops = append(ops, v)
				u, stop := g.Outputs(v)
				for ; u < stop; u++ {
					inside[u] = true
				}
				queue = append(queue, v)
			}
		}
	}
	if len(ends) == 0 {
		return false
	}
	for _, v := range ops { // nothing comes from outside, and batched products divide
		for _, t := range g.Inputs(v) {
			if p := g.Tensor(t).Producer; !inside[t] && !s.m.once[p] && !s.m.state[p] {
				return false
			}
		}
		if n := s.heads(v); n > 0 {
			width, count = gcd(width, n), gcd(count, n)
		}
	}
	for _, v := range slices.Concat(open, ops, ends) {
		closed[v], s.Shared[v] = true, true
	}
	s.states(ops, count)
	for t := range inside {
		s.Cut[t] = true
	}
	for _, v := range ends {
		s.Partial[first(g, v)] = true
	}
	s.Blocks++
	s.Width, s.Heads = gcd(s.Width, width), count
	return true
}

// states cuts what ops of a block hold of the samples, [B,heads,...], if it has the block's
// heads: keys and values that all heads read alike stay whole.
func (s *Split) states(ops []graph.OpID, heads int64) {
	g := s.m.Micro
	for _, v := range ops {
		for _, t := range g.Inputs(v) {
			p, shape := g.Tensor(t).Producer, g.Tensor(t).Shape
			if s.m.state[p] && heads > 0 && len(shape) > 2 && shape[1] >= heads && shape[1]%heads == 0 {
				s.Shared[p], s.Cut[t] = true, true
			}
		}
	}
}

// writes reports whether op i adds to what the samples hold.
func (s *Split) writes(i graph.OpID) bool {
	g := s.m.Micro
	if g.Op(i).Kind.Class() != graph.ClassUpdate {
		return false
	}
	for _, t := range g.Inputs(i) {
		if s.m.state[g.Tensor(t).Producer] {
			return true
		}
	}
	return false
}

// heads returns how many parts the batched product of op i can be shared out in, 0 where it
// is none. A result of [B,heads,...] has the samples of a micro-batch first, which tensor
// parallelism leaves whole; of fewer dimensions nothing tells samples from heads.
func (s *Split) heads(i graph.OpID) int64 {
	g := s.m.Micro
	o := g.Op(i)
	if o.GEMM.IsZero() {
		return 0
	}
	if shape := g.Tensor(first(g, i)).Shape; len(shape) > 3 && shape[1] > 0 && o.GEMM.Batch%shape[1] == 0 {
		return shape[1]
	}
	if o.GEMM.Batch > 1 {
		return o.GEMM.Batch
	}
	return 0
}

// local reports whether op i can work on some of the columns or heads alone.
func (s *Split) local(i graph.OpID) bool {
	switch o := s.m.Micro.Op(i); o.Kind.Class() {
	case graph.ClassElementwise, graph.ClassMove, graph.ClassMeta:
		return true
	case graph.ClassGEMM:
		return s.heads(i) > 0
	case graph.ClassReduction:
		return o.Kind == "Softmax" || o.Kind == "Max" || o.Kind == "Sum"
	}
	return false
}

// holders cuts the weights of cut products, the vectors that ops of a block read, and what
// updates them.
func (s *Split) holders() {
	g := s.m.Micro
	groups := map[int32]bool{}
	var mark func(t graph.TensorID)
	mark = func(t graph.TensorID) {
		if s.Cut[t] {
			return
		}
		s.Cut[t] = true
		p := g.Tensor(t).Producer
		s.Shared[p] = true
		if k := g.Op(p).Group; k > 0 {
			groups[k] = true
		}
		for _, x := range g.Inputs(p) {
			if g.Tensor(x).Bytes == g.Tensor(t).Bytes {
				mark(x)
			}
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		if !s.Shared[i] || s.m.once[i] {
			continue
		}
		if _, w, ok := s.linear(i); ok {
			mark(w)
			continue
		}
		for _, t := range g.Inputs(i) { // biases and factors: a vector along the columns that is trained
			if p := g.Tensor(t).Producer; s.m.once[p] && len(g.Tensor(t).Shape) == 1 && s.trained(p) {
				mark(t)
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
func (s *Split) backward() {
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
		if f != graph.None && s.Shared[f] {
			if x, _, ok := s.linear(f); ok {
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
		case partialIn && !cutIn && !plainIn && (o.Kind == "AddN" || o.Kind.Class() == graph.ClassMeta):
			s.partial(i) // sums of partial sums, reduced once
			for _, t := range in {
				if s.solely(t, i) {
					s.Partial[t] = false
				}
			}
		case cutIn:
			s.Shared[i] = true
			s.cut(i)
		}
	}
	for t := range s.Partial { // a partial sum that only views and sums pass on is none to reduce
		if s.Partial[t] && s.Cut[t] {
			s.Partial[t] = false
		}
	}
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
	s.Shared[i] = s.Shared[f]
	t, end := g.Outputs(i)
	for u := first(g, f); t < end; t, u = t+1, u+1 {
		s.Cut[t], s.Partial[t] = s.Cut[u], s.Partial[u]
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

func (s *Split) partial(i graph.OpID) {
	s.Partial[first(s.m.Micro, i)] = true
}

// product returns the part of op i's product that one of n ranks does.
func (s *Split) product(i graph.OpID, n int64) graph.GEMM {
	g := s.m.Micro
	x := g.Op(i).GEMM
	in := g.Inputs(i)
	if x.IsZero() || len(in) < 2 {
		return x
	}
	a, b, out := s.Cut[in[0]], s.Cut[in[1]], s.Cut[first(g, i)]
	switch {
	case a && b && out:
		x.Batch = ceil(x.Batch, n)
	case !out:
		x.K = ceil(x.K, n)
	case a:
		x.M = ceil(x.M, n)
	default:
		x.N = ceil(x.N, n)
	}
	return x
}

func ceil(x, n int64) int64 { return (x + n - 1) / n }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
