package unit

import (
	"placer/graph"
	"placer/internal/unionfind"
)

// families finds the weights families. family[i] is the family of op i, dense
// from 0, or -1; the result holds their number.
//
// A family starts as a co-location group with a variable, or a variable alone.
func (f *finder) families() {
	f.family = make([]int32, f.n)
	byGroup := map[int32]int32{}
	for i := range f.family {
		f.family[i] = -1
	}
	for i := range f.n {
		if f.class[i] != graph.ClassVariable {
			continue
		}
		k := f.g.Op(graph.OpID(i)).Group
		if x, ok := byGroup[k]; ok && k > 0 {
			f.family[i] = x
			continue
		}
		x := f.numFamilies
		f.numFamilies++
		f.family[i] = x
		if k > 0 {
			byGroup[k] = x
		}
	}
	for i := range f.n {
		if k := f.g.Op(graph.OpID(i)).Group; k > 0 {
			if x, ok := byGroup[k]; ok {
				f.family[i] = x
			}
		}
	}
	f.views()
	f.updates()
	f.gradients()
	f.views() // what depends on the gradients found
	f.fold()
}

// constants returns which ops depend on constants alone: constants, and light ops
// of them.
func (f *finder) constants() []bool {
	c := make([]bool, f.n)
	for i := range c {
		in := f.g.Inputs(graph.OpID(i))
		switch f.class[i] {
		case graph.ClassConst:
			c[i] = true
		case graph.ClassMeta, graph.ClassMove, graph.ClassElementwise:
			c[i] = len(in) > 0
		}
		for _, t := range in {
			c[i] = c[i] && c[f.g.Tensor(t).Producer]
		}
	}
	return c
}

// views adds ops that read one family and constants, and nothing else: reads,
// casts and transposes of a variable, regularisers, norms of a gradient. A row
// lookup belongs to its table whatever gives the indices: a table is larger than
// what is read of it.
func (f *finder) views() {
	for i := range f.n {
		if f.family[i] < 0 && f.class[i] != graph.ClassGEMM && f.class[i] != graph.ClassConv {
			f.family[i] = f.onlyFamily(graph.OpID(i))
		}
		f.isRead[i] = f.family[i] >= 0 && f.reads(graph.OpID(i))
	}
}

// onlyFamily returns the one family that op i reads beside constants, or -1.
func (f *finder) onlyFamily(i graph.OpID) int32 {
	if in := f.g.Inputs(i); f.class[i] == graph.ClassGather && len(in) > 0 {
		if p := f.g.Tensor(in[0]).Producer; f.isRead[p] {
			return f.family[p]
		}
	}
	x := int32(-1)
	for _, t := range f.g.Inputs(i) {
		p := f.g.Tensor(t).Producer
		y := f.family[p]
		switch {
		case f.constant[p]:
			continue
		case y < 0 || x >= 0 && x != y:
			return -1
		}
		x = y
	}
	return x
}

// reads reports whether op i of a family is a variable or gives its value on,
// whole.
func (f *finder) reads(i graph.OpID) bool {
	switch f.class[i] {
	case graph.ClassVariable:
		return true
	case graph.ClassMeta, graph.ClassMove, graph.ClassElementwise:
	default:
		return false
	}
	some := false
	for _, t := range f.g.Inputs(i) {
		p := f.g.Tensor(t).Producer
		if !f.constant[p] && !f.isRead[p] {
			return false
		}
		some = some || f.isRead[p]
	}
	return some
}

// updates adds each optimizer op to the family of its first variable of the
// largest size.
func (f *finder) updates() {
	for i := range f.n {
		if f.class[i] != graph.ClassUpdate || f.family[i] >= 0 {
			continue
		}
		most := int64(-1)
		for _, t := range f.g.Inputs(graph.OpID(i)) {
			x := f.g.Tensor(t)
			if f.family[x.Producer] >= 0 && int64(x.Bytes) > most {
				most = int64(x.Bytes)
				f.family[i] = f.family[x.Producer]
			}
		}
	}
}

// fold merges a family that no op outside families reads, but for a few numbers, into the
// one that it reads, or that reads it, where there is only one: optimizer slots that no
// co-location group ties to their variable, moving averages of a variable, sums of its
// gradient over micro-batches.
func (f *finder) fold() {
	const noneYet, several = -1, -2
	outside := make([]bool, f.numFamilies)
	reader, read := make([]int32, f.numFamilies), make([]int32, f.numFamilies)
	for x := range reader {
		reader[x], read[x] = noneYet, noneYet
	}
	note := func(at *int32, x int32) {
		switch *at {
		case noneYet, x:
			*at = x
		default:
			*at = several
		}
	}
	for i, to := range f.family {
		for _, t := range f.g.Inputs(graph.OpID(i)) {
			x := f.g.Tensor(t)
			from := f.family[x.Producer]
			switch {
			case from < 0 || from == to:
			case to < 0 && x.Bytes <= scalarBytes && !f.isRead[x.Producer]: // a norm
			case to < 0:
				outside[from] = true
			default:
				note(&reader[from], to)
				note(&read[to], from)
			}
		}
	}
	u := unionfind.New(int(f.numFamilies))
	for x := range f.numFamilies {
		switch {
		case outside[x]:
		case read[x] >= 0:
			u.Join(x, read[x])
		case reader[x] >= 0:
			u.Join(x, reader[x])
		}
	}
	for i, x := range f.family {
		if x >= 0 {
			f.family[i] = u.Root(x)
		}
	}
}

// gradients adds, from each update backwards, the ops whose results end in one
// family: sums over steps, reshapes, and up to the first product; and the ops
// that make the indices of lookups. A product that reads another variable is a
// gradient of an activation and stays with it, even where only an embedding is
// behind it; so does a sum of such gradients, as along the residual connections
// that end in the first layer's weights.
func (f *finder) gradients() {
	bookkeeping := f.bookkeeping()
	sums := f.activationSums()
	for i := f.n - 1; i >= 0; i-- {
		if f.family[i] >= 0 || f.constant[i] || sums[i] {
			continue
		}
		id := graph.OpID(i)
		x, lookups := f.soleFamily(id)
		if x < 0 {
			continue
		}
		if !lookups && !bookkeeping[i] && (f.class[i] == graph.ClassInput || f.phased && f.g.Op(id).Phase == graph.Forward) ||
			lookups && (f.class[i] == graph.ClassGEMM || f.class[i] == graph.ClassConv) {
			continue
		}
		if f.class[i] == graph.ClassGEMM || f.class[i] == graph.ClassConv {
			if f.readsOther(id, x) {
				continue
			}
		}
		f.family[i] = x
		f.index[i] = lookups
	}
}

// activationSums returns which ops add gradients of activations: results of
// products that read a variable, carried on by ops that are no products, [N].
func (f *finder) activationSums() []bool {
	carries, sums := make([]bool, f.n), make([]bool, f.n)
	for i := range carries {
		id := graph.OpID(i)
		product := f.class[i] == graph.ClassGEMM || f.class[i] == graph.ClassConv
		if f.phased && f.g.Op(id).Phase != graph.Backward {
			continue
		}
		from := 0
		for _, t := range f.g.Inputs(id) {
			p := f.g.Tensor(t).Producer
			if product {
				carries[i] = carries[i] || f.isRead[p]
			} else if carries[p] {
				carries[i] = true
				from++
			}
		}
		sums[i] = from > 1 && f.class[i] == graph.ClassElementwise
	}
	return sums
}

// readsOther reports whether op i reads a variable of another family than x.
func (f *finder) readsOther(i graph.OpID, x int32) bool {
	for _, t := range f.g.Inputs(i) {
		if p := f.g.Tensor(t).Producer; f.isRead[p] && f.family[p] != x {
			return true
		}
	}
	return false
}

// bookkeeping returns which ops work on values of variables alone, as moving
// averages do, [N].
func (f *finder) bookkeeping() []bool {
	of := make([]bool, f.n)
	for i := range of {
		some, all := false, true
		for _, t := range f.g.Inputs(graph.OpID(i)) {
			p := f.g.Tensor(t).Producer
			x := f.isRead[p] || of[p]
			some = some || x
			all = all && (x || f.constant[p])
		}
		of[i] = some && all
	}
	return of
}

// soleFamily returns the family that all data consumers of op i belong to, or -1,
// and whether they are all lookups, or make the indices of lookups. A consumer
// that reads nothing but op i and constants (a norm for clipping) follows it and
// does not count.
func (f *finder) soleFamily(i graph.OpID) (x int32, lookups bool) {
	x, lookups = -1, true
	first, end := f.g.Outputs(i)
	for t := first; t < end; t++ {
		for _, c := range f.g.Consumers(t) {
			y := f.family[c]
			if y < 0 {
				if f.follows(c, i) {
					continue
				}
				return -1, false
			}
			if x >= 0 && x != y {
				return -1, false
			}
			x = y
			lookups = lookups && (f.index[c] || f.isLookup(c))
		}
	}
	return x, lookups
}

// isLookup reports whether op c of a family looks rows up in its variable.
func (f *finder) isLookup(c graph.OpID) bool {
	return f.class[c] == graph.ClassGather && f.g.Op(c).Phase == graph.Forward
}

// follows reports whether op c is a light reduction of op i alone.
func (f *finder) follows(c, i graph.OpID) bool {
	if f.class[c] != graph.ClassReduction && f.class[c] != graph.ClassMeta {
		return false
	}
	for _, t := range f.g.Inputs(c) {
		if p := f.g.Tensor(t).Producer; p != i && !f.constant[p] {
			return false
		}
	}
	return true
}
