package hlo

import (
	"slices"

	"placer/graph"
)

// given is an argument of the entry whose memory a result is given back in.
type given struct {
	argument graph.OpID
	result   int // among the results' arrays
	value    graph.TensorID
}

// pair finds the arguments that results are given back in: those that the module names, and
// for donors, whose results it does not name, the first result left of their form, which is
// what JAX takes where it can say so.
func (b *builder) pair() {
	at := map[int64]graph.OpID{}
	for i, x := range b.arguments {
		if !x.shape.is {
			at[x.attr.index] = i
		}
	}
	taken := make([]bool, len(b.gives))
	for k, t := range b.gives {
		if p, ok := b.m.outputs[int64(k)]; ok {
			taken[k] = true
			if i, ok := at[p]; ok {
				b.places = append(b.places, given{i, k, t})
			}
		}
	}
	for _, p := range b.m.donors {
		i, ok := at[p]
		if !ok {
			continue
		}
		x, _ := b.b.OutputsAt(i)
		for k, t := range b.gives {
			if a, c := b.b.TensorAt(t), b.b.TensorAt(x); !taken[k] && a.DType == c.DType && a.Bytes == c.Bytes && a.Shape.Equal(c.Shape) {
				taken[k] = true
				b.places = append(b.places, given{i, k, t})
				break
			}
		}
	}
}

// update is a variable and the op that writes its new value over the old one.
type update struct {
	variable, writer graph.OpID
	value            graph.TensorID
	readers          []graph.OpID // of the old value, ascending
}

// maxSearched bounds the ops that are looked at for cycles.
const maxSearched = 1 << 27

// inPlace makes ops write results in the memory of the variables that they are given back in,
// as XLA does: beside the variable they take none, they are on its device, and they wait for
// what reads the old value. A result that the old value's last reader depends on, or whose op
// reads the old value elsewhere than where it writes, needs memory of its own there.
func (b *builder) inPlace() {
	var all, late []update
	written := map[graph.TensorID]bool{}
	readers := b.readersOfArguments()
	for _, p := range b.places {
		value := b.viewed(p.value)
		made, old := b.b.TensorAt(value), b.b.At(p.argument)
		u := update{p.argument, made.Producer, value, readers[p.argument]}
		if written[value] || b.arguments[u.writer] != nil || made.Resident || made.Bytes != old.Resident || slices.Contains(u.readers, u.writer) && !b.overwrites(u.writer) {
			continue
		}
		written[value] = true
		if n := len(u.readers); n > 0 && u.readers[n-1] > u.writer {
			late = append(late, u)
			continue
		}
		b.waits[u.writer] = append(b.waits[u.writer], u.readers...)
		all = append(all, u)
	}
	left := maxSearched
	for _, u := range late { // what is listed first need not come first
		if b.dependOn(u.writer, u.readers, &left) {
			continue
		}
		b.waits[u.writer] = append(b.waits[u.writer], u.readers...)
		all = append(all, u)
	}
	for _, u := range all {
		b.b.TensorAt(u.value).Resident = true
	}
	b.colocate(all)
	for part := range slices.Chunk(all, 64) {
		b.await(part)
	}
}

// colocate makes a group of each weight and the ops and variables of its update: that writer,
// and those of the optimizer's state of the weight's size that it depends on, element by
// element. What belongs to no weight is a group with its writer.
func (b *builder) colocate(all []update) {
	group, next := map[graph.OpID]int32{}, int32(0)
	of := map[graph.OpID]bool{}
	for _, u := range all {
		of[u.writer] = true
	}
	for _, u := range all {
		if b.b.At(u.variable).Params == 0 || group[u.writer] > 0 {
			continue
		}
		next++
		group[u.writer] = next
		size := len(b.b.TensorAt(u.value).Shape)
		seen := map[graph.OpID]bool{}
		for stack := []graph.OpID{u.writer}; len(stack) > 0; {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if of[i] && group[i] == 0 {
				group[i] = next
			}
			for _, t := range b.b.InputsAt(i) {
				x := b.b.TensorAt(t)
				if p := x.Producer; size > 0 && !seen[p] && b.b.At(p).Phase == graph.Update && x.Shape.Equal(b.b.TensorAt(u.value).Shape) {
					seen[p] = true
					stack = append(stack, p)
				}
			}
		}
	}
	for _, u := range all {
		if group[u.writer] == 0 {
			next++
			group[u.writer] = next
		}
		b.b.At(u.variable).Group, b.b.At(u.writer).Group = group[u.writer], group[u.writer]
	}
}

// overwrites reports whether op i reads an element of what it writes over before it writes
// there.
func (b *builder) overwrites(i graph.OpID) bool {
	op := b.b.At(i)
	switch op.Kind.Class() {
	case graph.ClassElementwise, graph.ClassOther:
		return true
	}
	return b.written[i] || op.Kind == "ScatterAdd"
}

// dependOn reports whether ops other than writer depend on it, or may: left is how many ops
// may be looked at.
func (b *builder) dependOn(writer graph.OpID, ops []graph.OpID, left *int) bool {
	seen := map[graph.OpID]bool{writer: true}
	var stack []graph.OpID
	visit := func(i graph.OpID) {
		if !seen[i] {
			seen[i] = true
			stack = append(stack, i)
		}
	}
	for _, i := range ops {
		visit(i)
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if *left--; *left < 0 {
			return true
		}
		for _, t := range b.b.InputsAt(i) {
			p := b.b.TensorAt(t).Producer
			if p == writer {
				return true
			}
			visit(p)
		}
		for _, p := range b.waits[i] {
			if p == writer {
				return true
			}
			visit(p)
		}
	}
	return false
}

// await makes at most 64 ops wait for readers of what they write over that they do not
// follow in any case.
func (b *builder) await(part []update) {
	ahead := make([]uint64, b.b.NumOps()) // bit k: the writer of part[k] depends on it
	last := graph.OpID(0)
	for k, u := range part {
		ahead[u.writer] |= 1 << k
		last = max(last, u.writer)
	}
	for i := last; i >= 0; i-- {
		if ahead[i] == 0 {
			continue
		}
		for _, t := range b.b.InputsAt(i) {
			ahead[b.b.TensorAt(t).Producer] |= ahead[i]
		}
	}
	for k, u := range part {
		for _, r := range u.readers {
			if ahead[r]>>k&1 == 0 {
				b.b.Control(r, u.writer)
			}
		}
	}
}

// readersOfArguments returns the ops that read each argument, by views too.
func (b *builder) readersOfArguments() map[graph.OpID][]graph.OpID {
	readers := map[graph.OpID][]graph.OpID{}
	n := graph.OpID(b.b.NumOps())
	if n == 0 {
		return readers
	}
	_, tensors := b.b.OutputsAt(n - 1)
	of := make([]graph.OpID, tensors) // the argument that a tensor is, by views too
	for t := range of {
		of[t] = graph.None
	}
	for i := range b.arguments {
		for t, end := b.b.OutputsAt(i); t < end; t++ { // several where it is a tuple
			of[t] = i
		}
	}
	for i := range n {
		for _, t := range b.b.InputsAt(i) {
			a := of[t]
			if a == graph.None {
				continue
			}
			if b.isView(i) {
				out, _ := b.b.OutputsAt(i)
				of[out] = a
			} else if list := readers[a]; len(list) == 0 || list[len(list)-1] != i {
				readers[a] = append(list, i)
			}
		}
	}
	return readers
}

// viewed returns the tensor that t is a view of, t itself where it is none.
func (b *builder) viewed(t graph.TensorID) graph.TensorID {
	for i := b.b.TensorAt(t).Producer; b.isView(i); i = b.b.TensorAt(t).Producer {
		t = b.b.InputsAt(i)[0]
	}
	return t
}

// isView reports whether op i gives what it reads by another name.
func (b *builder) isView(i graph.OpID) bool {
	f, _ := graph.FactsOf(b.b.At(i).Kind)
	first, end := b.b.OutputsAt(i)
	return f.Fuse == graph.FuseView && end == first+1 && len(b.b.InputsAt(i)) == 1
}
