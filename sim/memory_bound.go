package sim

import (
	"slices"

	"placer/hw"
)

// memoryBound bounds from above what devices hold during a step of which only the order
// is known in which each device runs its kernels. What a device receives counts from the
// beginning of the step, and to its end if several ops there read it; what others receive
// or a view is in counts from its op to the end of the step. All else is freed when the
// last of its readers ends.
type memoryBound struct {
	t      *tables
	device []uint8 // [N] of each op
	of     []int32 // [N] kernel of each op; nil: each is one
	after  []int32 // [N] next op of the same kernel, or none; nil: each is one
	left   [hw.MaxPlaced]int64
	ended  [hw.MaxPlaced]int64 // what the kernel that ran last frees
	uses   []int32             // [T] readers to end yet; stays where nothing frees it
}

// stays is in place of the readers of what is not freed.
const stays = -1

// begin is at the beginning of a step in which devices receive so many bytes.
func (b *memoryBound) begin(devs []stepDevice) {
	if b.uses == nil {
		b.uses = make([]int32, len(b.t.layout.bytes))
	}
	for d := range devs {
		b.left[d], b.ended[d] = int64(b.t.m.Devices[d].Memory)-devs[d].received, 0
	}
	for _, m := range b.t.residents {
		b.left[b.device[m.op]] -= m.bytes
	}
}

// run has a device run the kernel that begins with op first, after those that it ran
// before, and reports whether that is known to fit.
func (b *memoryBound) run(first int32) bool {
	d := b.device[first]
	b.left[d] += b.ended[d]
	b.ended[d] = 0
	for i := first; i != none; i = b.next(i) {
		b.left[d] -= b.start(i, d)
	}
	for i := first; i != none; i = b.next(i) {
		b.ended[d] += b.end(i, d)
	}
	return b.left[d] >= 0
}

func (b *memoryBound) next(i int32) int32 {
	if b.after == nil {
		return none
	}
	return b.after[i]
}

// start returns what op i on device d allocates, and counts the readers of its outputs.
func (b *memoryBound) start(i int32, d uint8) int64 {
	l := b.t.layout
	bytes := l.workspace[i]
	for id := l.outAt[i]; id < l.outAt[i+1]; id++ {
		b.uses[id] = stays
		if l.resident[id] || b.inside(i, id) || l.share[id] != none && !b.together(i, l.producer[l.share[id]]) {
			continue
		}
		bytes += l.bytes[id]
		users := l.use[l.useAt[id]:l.useAt[id+1]]
		if !l.viewed[id] && !slices.ContainsFunc(users, func(v int32) bool { return b.device[v] != d }) {
			b.uses[id] = int32(len(users))
		}
	}
	return bytes
}

// end returns what the end of op i on device d frees.
func (b *memoryBound) end(i int32, d uint8) int64 {
	l := b.t.layout
	bytes := l.workspace[i]
	for id := l.outAt[i]; id < l.outAt[i+1]; id++ {
		if b.uses[id] == 0 && l.useAt[id] == l.useAt[id+1] {
			bytes += l.bytes[id]
		}
	}
	for _, id := range l.in[l.inAt[i]:l.inAt[i+1]] {
		switch {
		case b.device[l.producer[id]] != d:
			if l.useAt[id+1]-l.useAt[id] == 1 && !l.viewed[id] && !l.readsShape[i] {
				bytes += l.bytes[id]
			}
		case b.uses[id] > 0:
			if b.uses[id]--; b.uses[id] == 0 {
				bytes += l.bytes[id]
			}
		}
	}
	return bytes
}

// inside reports whether the kernel of op i keeps its output id to itself.
func (b *memoryBound) inside(i, id int32) bool {
	return b.of != nil && b.t.layout.keeps(b.of, b.of[i], id)
}

// together reports whether one kernel has both ops.
func (b *memoryBound) together(i, j int32) bool { return b.of != nil && b.of[i] == b.of[j] }
