package strategy

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// block is what lies between products that are cut by columns and products that are cut by
// rows.
type block struct {
	s               *Split
	open, ops, ends []graph.OpID
	inside          map[graph.TensorID]bool // what has a part on each rank
}

// mostInBlock bounds the ops of a block.
const mostInBlock = 4096

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

// try adds the block of open, if there is one, with the products of other activations that
// it joins: queries that read other activations than keys and values do.
func (s *Split) try(open []graph.OpID, closed []bool) bool {
	for {
		b := s.grow(open, closed)
		if b == nil {
			return false
		}
		t, ok := b.outside()
		if !ok {
			b.close(closed)
			return true
		}
		more := b.openers(t)
		if len(more) == 0 {
			return false
		}
		open = slices.Concat(open, more)
	}
}

// grow follows the results of open up to the next products with weights; nil where there is
// none, or an op between works on all columns.
func (s *Split) grow(open []graph.OpID, closed []bool) *block {
	g := s.m.Micro
	b := &block{s: s, open: open, inside: map[graph.TensorID]bool{}}
	add := func(i graph.OpID) {
		t, end := g.Outputs(i)
		for ; t < end; t++ {
			b.inside[t] = true
		}
	}
	seen := map[graph.OpID]bool{}
	for _, i := range open {
		if closed[i] {
			return nil
		}
		seen[i] = true
		add(i)
	}
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
					if !b.inside[x] || closed[v] {
						return nil
					}
					b.ends = append(b.ends, v)
					continue
				}
				if !s.local(v) && !s.writes(v) && !b.averages(v) || len(b.ops) > mostInBlock {
					return nil
				}
				b.ops = append(b.ops, v)
				add(v)
				queue = append(queue, v)
			}
		}
	}
	if len(b.ends) == 0 {
		return nil
	}
	return b
}

// averages reports whether op i is a mean over the columns of each head, [B,heads,S,D] or
// [B,S,heads,D], as a norm of each head in single ops has one.
func (b *block) averages(i graph.OpID) bool {
	g := b.s.m.Micro
	if k := g.Op(i).Kind; k != "Mean" && k != "ReduceMean" {
		return false
	}
	x, y := g.Tensor(g.Inputs(i)[0]).Shape, g.Tensor(first(g, i)).Shape
	n := len(x) - 1
	if n < 3 || len(y) < n || !slices.Equal(x[:n], y[:n]) || len(y) > n && (len(y) != len(x) || y[n] != 1) {
		return false
	}
	return slices.ContainsFunc(b.open, func(v graph.OpID) bool {
		columns := g.Op(v).GEMM.N
		of := func(heads int64) bool { return heads*x[n] > 0 && columns%(heads*x[n]) == 0 }
		return x[n] < columns && (of(x[1]) || of(x[n-1]))
	})
}

// outside returns a tensor that ops of the block need parts of and that is none of its own.
func (b *block) outside() (graph.TensorID, bool) {
	g, m := b.s.m.Micro, b.s.m
	for _, v := range b.ops {
		for _, t := range g.Inputs(v) {
			if p := g.Tensor(t).Producer; !b.inside[t] && !m.once[p] && !b.s.kept(p) && !b.s.sampleless[p] && !b.s.whole(v, t) {
				return t, true
			}
		}
	}
	return 0, false
}

// openers returns the products with weights that tensor t is made of, if ops that work on
// each column or head alone make it; nil if not.
func (b *block) openers(t graph.TensorID) (found []graph.OpID) {
	s, g := b.s, b.s.m.Micro
	seen := map[graph.OpID]bool{}
	queue := []graph.OpID{g.Tensor(t).Producer}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if seen[i] {
			continue
		}
		seen[i] = true
		if _, _, ok := s.linear(i); ok {
			if slices.Contains(b.open, i) {
				return nil
			}
			found = append(found, i)
			continue
		}
		if !s.local(i) && !b.averages(i) || len(seen) > mostInBlock {
			return nil
		}
		for _, x := range g.Inputs(i) {
			if p := g.Tensor(x).Producer; !s.m.once[p] && !s.kept(p) && !s.sampleless[p] && !s.whole(i, x) {
				queue = append(queue, p)
			}
		}
	}
	slices.Sort(found)
	return found
}

// close cuts the block.
func (b *block) close(closed []bool) {
	s, g := b.s, b.s.m.Micro
	width, heads := int64(0), s.Heads
	b.copies()
	for _, i := range b.open {
		if _, mixed := s.mixed[i]; !mixed && !s.Copied[i] { // heads say how these can be cut
			width = gcd(width, g.Op(i).GEMM.N)
		}
	}
	for _, i := range b.ends {
		width = gcd(width, g.Op(i).GEMM.K)
	}
	for _, i := range b.ops {
		if n := s.heads(i); n > 0 {
			heads = gcd(heads, n)
		}
		if n := s.repeated(i); n > 0 {
			heads = gcd(heads, n)
		}
	}
	for _, v := range slices.Concat(b.open, b.ops, b.ends) {
		closed[v], s.Shared[v] = true, true
	}
	for t := range b.inside {
		s.Cut[t] = true
	}
	for _, v := range b.ops {
		if n := s.moments(v); n > 0 {
			s.Moments[first(g, v)] = n
		}
	}
	for _, v := range b.ends {
		s.partial(v)
	}
	s.Blocks++
	s.Width, s.Heads = gcd(s.Width, width), heads
	b.states(heads)
}

// states cuts what ops of the block hold of the samples, [B,heads,...], if it has the block's
// heads: keys and values that all heads read alike stay whole.
func (b *block) states(heads int64) {
	s, g := b.s, b.s.m.Micro
	for _, v := range b.ops {
		for _, t := range g.Inputs(v) {
			p, shape := g.Tensor(t).Producer, g.Tensor(t).Shape
			if s.kept(p) && heads > 0 && len(shape) > 2 && shape[1] >= heads && shape[1]%heads == 0 {
				s.Shared[p], s.Cut[t] = true, true
			}
		}
	}
}

// local reports whether op i can work on some of the columns or heads alone.
func (s *Split) local(i graph.OpID) bool {
	g := s.m.Micro
	switch o := g.Op(i); o.Kind.Class() {
	case graph.ClassElementwise, graph.ClassMove, graph.ClassMeta:
		return true
	case graph.ClassGEMM:
		return s.heads(i) > 0
	case graph.ClassReduction:
		// Behind a separate dimension for the heads a normalisation is of one head.
		return o.Kind == "Softmax" || o.Kind == "Max" || o.Kind == "Sum" || normalises(o.Kind) && (len(g.Tensor(first(g, i)).Shape) > 3 || s.moments(i) > 0)
	}
	return false
}

// moments returns what ranks add up within op i, 0 where it is not a normalisation of the
// columns, [R,heads*D], of all heads at once: an f32 a row, with a mean two.
func (s *Split) moments(i graph.OpID) units.Bytes {
	g := s.m.Micro
	y := g.Tensor(first(g, i))
	if s.trains || !normalises(g.Op(i).Kind) || len(y.Shape) != 2 {
		return 0
	}
	for _, v := range g.Consumers(first(g, i)) {
		if z := g.Tensor(first(g, v)); g.Op(v).Kind != "Reshape" || len(z.Shape) != 4 || z.Bytes != y.Bytes {
			return 0
		}
	}
	rows := units.Bytes(4 * y.Shape[0])
	if g.Op(i).Kind == "LayerNormalization" {
		rows *= 2
	}
	return rows
}

// normalises reports whether ops of a kind normalise over the last dimension.
func normalises(k graph.Kind) bool { return k == "RMSNorm" || k == "LayerNormalization" }

// kept reports whether op i has something of the samples by heads, [B,heads,...]: it holds it, or
// a step of inference is handed it, as decoders in ONNX are their keys and values.
func (s *Split) kept(i graph.OpID) bool {
	g := s.m.Micro
	return s.m.state[i] || !s.trains && g.Op(i).Kind.Class() == graph.ClassInput && len(g.Tensor(first(g, i)).Shape) == 4
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

// sampleless returns for each op, [N], whether no sample and no chance enters it: a mask that
// is made anew in each step. Every rank makes it whole.
func sampleless(m *Model) []bool {
	g := m.Micro
	is := make([]bool, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		is[i] = m.once[i] || !m.state[i] && o.Kind.Class() != graph.ClassInput && !random(o)
		is[i] = is[i] && o.Phase != graph.Update
		for p := range g.Predecessors(i) {
			is[i] = is[i] && is[p]
		}
	}
	return is
}

// whole reports whether ranks that have some of the heads that op i gives, [B,heads,S,D] or
// [B,S,heads,D], can all read tensor t as it is: its dimension of heads has size 1, or it is
// broadcast over heads. Gradients of such tensors would be partial sums, so in a step with a
// backward pass nothing is read so.
func (s *Split) whole(i graph.OpID, t graph.TensorID) bool {
	g := s.m.Micro
	o := g.Op(i)
	x, y := g.Tensor(t).Shape, g.Tensor(first(g, i)).Shape
	switch {
	case s.trains || len(y) != 4:
		return false
	case len(x) == len(y):
		return x[1] == 1 && y[1] > 1 || o.GEMM.IsZero() && x[2] == 1 && y[2] > 1
	case len(x) > 2 || o.Kind.Class() != graph.ClassElementwise:
		return false
	}
	for k := range x {
		if at := len(y) - len(x) + k; x[k] != 1 && x[k] != y[at] {
			return false
		}
	}
	return true
}

// headwise reports whether op i multiplies each head, [B,heads,S,D], by its own part of a
// weight.
func (s *Split) headwise(i graph.OpID) bool {
	g := s.m.Micro
	o, in := g.Op(i), g.Inputs(i)
	if o.GEMM.Batch < 2 || len(in) < 2 || !s.m.once[g.Tensor(in[1]).Producer] {
		return false
	}
	shape := g.Tensor(in[0]).Shape
	return len(shape) > 3 && shape[1] == o.GEMM.Batch
}

// repeated returns the heads, [B,heads,...], that op i repeats for groups of queries, as in
// products of as many heads of keys as of queries; 0 where it repeats nothing.
func (s *Split) repeated(i graph.OpID) (heads int64) {
	g := s.m.Micro
	y := g.Tensor(first(g, i)).Shape
	var x graph.Shape
	for _, t := range g.Inputs(i) {
		if p := g.Tensor(t).Producer; s.m.once[p] || s.sampleless[p] {
			continue
		}
		if x != nil {
			return 0
		}
		x = g.Tensor(t).Shape
	}
	if len(x) < 4 || len(y) < 4 || x[1] < 1 {
		return 0
	}
	n, err := x.Elements()
	m, err2 := y.Elements()
	if err != nil || err2 != nil || n < 1 || m <= n || m%n != 0 {
		return 0
	}
	if y[1] == x[1]*(m/n) || len(y) == 5 && y[1] == x[1] { // [B,heads,S,D] to [B,heads,group,S,D], or merged
		return x[1]
	}
	return 0
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
	if in := g.Inputs(i); o.Kind == graph.Attention && len(in) > 1 && !s.latent(i) {
		if keys := g.Tensor(in[1]).Shape; len(keys) > 3 && keys[1] > 0 {
			return keys[1]
		}
	}
	shape := g.Tensor(first(g, i)).Shape
	if len(shape) == 3 { // [B*heads,...], which views of [B,heads,...] made
		for _, t := range g.Inputs(i) {
			p := g.Tensor(t).Producer
			if g.Op(p).Kind != "Reshape" {
				continue
			}
			if of := g.Tensor(g.Inputs(p)[0]).Shape; len(of) == 4 && of[0]*of[1] == shape[0] {
				shape = of
				break
			}
		}
	}
	if len(shape) > 3 && shape[1] > 0 {
		if o.GEMM.Batch%shape[1] == 0 {
			return shape[1]
		}
		// Heads that all read the same keys or values are rows of one product.
		if in := g.Inputs(i); o.GEMM.M%shape[1] == 0 && len(in) > 1 && s.whole(i, in[1]) {
			return shape[1]
		}
	}
	if o.GEMM.Batch > 1 {
		return o.GEMM.Batch
	}
	return 0
}

// latent reports whether op i is attention in one kernel of heads that all read one tensor as
// keys and, without some of its columns, as values: latent attention.
func (s *Split) latent(i graph.OpID) bool {
	g := s.m.Micro
	y := g.Tensor(first(g, i)).Shape
	for _, t := range g.Inputs(i)[1:] {
		if x := g.Tensor(t).Shape; len(x) == 4 && (x[1] != 1 || len(y) != 4 || x[3] <= y[3]) {
			return false
		}
	}
	return true
}
