package nn

import (
	"cmp"
	"math"
	"slices"
)

// buffer is a matrix [n,d] whose memory is part of a slot.
type buffer struct {
	n, d int
	slot *slot
}

// size returns the number of elements.
func (b *buffer) size() int { return b.n * b.d }

// get returns the matrix, and allocates the slot's memory at first use.
func (b *buffer) get() Mat {
	if b.slot.memory == nil {
		b.slot.memory = make([]float32, b.slot.size)
	}
	return Mat{b.n, b.d, b.slot.memory[:b.size():b.size()]}
}

// lifetime is when a buffer is in use, as positions in the order of execution.
type lifetime struct {
	buffer       *buffer
	birth, death int // both inclusive
}

// forever is the death of a buffer that the caller reads after the run.
const forever = math.MaxInt

// slot is memory that several buffers use one after another. It is allocated at
// first use.
type slot struct {
	size   int
	memory []float32
	until  int
}

// assign gives each lifetime the smallest slot that is free and large enough, or
// a new one.
func assign(all []*lifetime) []*slot {
	slices.SortStableFunc(all, func(a, b *lifetime) int {
		if c := cmp.Compare(a.birth, b.birth); c != 0 {
			return c
		}
		return cmp.Compare(b.buffer.size(), a.buffer.size())
	})
	var slots []*slot
	for _, l := range all {
		var best *slot
		for _, s := range slots {
			if s.until < l.birth && s.size >= l.buffer.size() && (best == nil || s.size < best.size) {
				best = s
			}
		}
		if best == nil {
			best = &slot{size: l.buffer.size()}
			slots = append(slots, best)
		}
		best.until = l.death
		l.buffer.slot = best
	}
	return slots
}
