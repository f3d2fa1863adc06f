package hlo

import (
	"placer/graph"
	"placer/units"
)

// whileLoop is an op that repeats, what its variables begin with, and what they end with.
type whileLoop struct {
	x         *instruction
	op        graph.OpID
	from, end []graph.TensorID
}

// few is how many times as large as all that it is made of an array is that is made right before
// it is needed: zeros, which a loop fills.
const few = 8

// loopsInPlace has the arrays that loops fill, one part in each iteration, take memory once, from
// the loop on: XLA gives what a variable begins with and what it ends with one buffer, and makes
// the zeros right before.
func (b *builder) loopsInPlace() {
	if len(b.loops) == 0 {
		return
	}
	repeats := map[graph.OpID]bool{}
	for _, l := range b.loops {
		repeats[l.op] = true
	}
	computed := map[graph.TensorID]bool{} // with: read by more than loops, and copies for these
	for i := range graph.OpID(b.b.NumOps()) {
		if repeats[i] || b.copies(i) {
			continue
		}
		for _, t := range b.b.InputsAt(i) {
			computed[t] = true
		}
	}
	for _, t := range b.gives {
		computed[t] = true
	}
	for _, l := range b.loops {
		for k, t := range l.from {
			if end := l.end[k]; end == t || b.b.TensorAt(end).Bytes != b.b.TensorAt(t).Bytes {
				continue
			}
			for b.isView(b.b.TensorAt(t).Producer) && !computed[t] {
				t = b.b.InputsAt(b.b.TensorAt(t).Producer)[0]
			}
			if !computed[t] && !b.there(t) && b.fills(t, repeats) {
				b.b.TensorAt(t).Resident = true
			}
		}
	}
}

// copies reports whether op i is a copy of the one array that it reads.
func (b *builder) copies(i graph.OpID) bool {
	return len(b.b.InputsAt(i)) == 1 && (b.b.At(i).Kind == "Transpose" || b.isView(i))
}

// fills reports whether t is made of few bytes, or a copy of what is; repeats are the loops.
func (b *builder) fills(t graph.TensorID, repeats map[graph.OpID]bool) bool {
	for range maxViews {
		p := b.b.TensorAt(t).Producer
		if first, last := b.b.OutputsAt(p); last != first+1 || repeats[p] {
			return false
		}
		if b.inputs(p)*few <= b.b.TensorAt(t).Bytes {
			return true
		}
		if !b.copies(p) {
			return false
		}
		t = b.b.InputsAt(p)[0]
	}
	return false
}

// inputs returns the bytes that op i reads.
func (b *builder) inputs(i graph.OpID) (n units.Bytes) {
	for _, t := range b.b.InputsAt(i) {
		n = min(n+b.b.TensorAt(t).Bytes, graph.MaxBytes)
	}
	return n
}
