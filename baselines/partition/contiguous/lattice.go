package contiguous

import (
	"context"
	"math/bits"
	"math/rand/v2"
)

// lattice is the downsets of an order, smaller ones first, and how they grow. The
// first is empty, the last holds everything.
type lattice struct {
	at    []int32 // [I+1] into the next two
	block []int32 // that is added
	to    []int32 // the downset it leads to
	words int
	has   []uint64 // [I,words] the blocks of each downset; nil where each has one more than the one before
}

// set returns the blocks of downset i, as bits.
func (l *lattice) set(i int32) []uint64 { return l.has[int(i)*l.words : int(i+1)*l.words] }

// between returns the blocks of downset to that downset from, within it, lacks.
func (l *lattice) between(from, to int32) []int32 {
	if l.has == nil {
		return l.block[from:to]
	}
	var blocks []int32
	small, large := l.set(from), l.set(to)
	for w := range large {
		for m := large[w] &^ small[w]; m != 0; m &= m - 1 {
			blocks = append(blocks, int32(w<<6|bits.TrailingZeros64(m)))
		}
	}
	return blocks
}

func (l *lattice) size() int { return len(l.at) - 1 }

// chain returns the prefixes of a topological order: a lattice in which no
// choice is left.
func chain(order []int32) *lattice {
	l := &lattice{block: order}
	for k := range int32(len(order)) {
		l.at, l.to = append(l.at, k), append(l.to, k+1)
	}
	n := int32(len(order))
	l.at = append(l.at, n, n)
	return l
}

// downsets returns all downsets of b, or nil if there are more than limit or ctx
// ends. They are grown breadth first, as bit sets, and found again by their hash.
func downsets(ctx context.Context, b *blocks, limit int) *lattice {
	n := b.NumBlocks()
	words := (n + 63) / 64
	rng := rand.New(rand.NewPCG(0x646f776e, 0x73657473))
	zobrist := make([]uint64, n)
	for v := range zobrist {
		zobrist[v] = rng.Uint64()
	}
	// has and may are bit sets of the downset and of the blocks that may be added.
	has, may := make([]uint64, words), make([]uint64, words)
	for v := range n {
		if len(b.before[v]) == 0 {
			may[v>>6] |= 1 << (v & 63)
		}
	}
	hashes := []uint64{0}
	table := newTable(1 << 12)
	table.put(0, 0)
	l := &lattice{at: []int32{0}}
	trial := make([]uint64, words)
	for i := 0; i < len(hashes); i++ {
		if ctx.Err() != nil {
			return nil
		}
		for w := range words {
			for m := may[i*words+w]; m != 0; m &= m - 1 {
				v := w<<6 | bits.TrailingZeros64(m)
				copy(trial, has[i*words:(i+1)*words])
				trial[w] |= 1 << (v & 63)
				h := hashes[i] ^ zobrist[v]
				j := table.find(h, func(k int32) bool { return same(has[int(k)*words:], trial) })
				if j < 0 {
					j = int32(len(hashes))
					if len(hashes) >= limit {
						return nil
					}
					hashes = append(hashes, h)
					table.put(h, j)
					has = append(has, trial...)
					may = append(may, may[i*words:(i+1)*words]...)
					next := may[int(j)*words:]
					next[w] &^= 1 << (v & 63)
					for _, u := range b.after[v] {
						if covered(b.before[u], trial) {
							next[u>>6] |= 1 << (u & 63)
						}
					}
				}
				l.block, l.to = append(l.block, int32(v)), append(l.to, j)
			}
		}
		l.at = append(l.at, int32(len(l.to)))
	}
	l.words, l.has = words, has
	return l
}

func same(a, b []uint64) bool {
	for w := range b {
		if a[w] != b[w] {
			return false
		}
	}
	return true
}

func covered(all []int32, by []uint64) bool {
	for _, v := range all {
		if by[v>>6]&(1<<(v&63)) == 0 {
			return false
		}
	}
	return true
}

// table finds downsets by their hash: open addressing, doubled when half full.
type table struct {
	hash []uint64
	at   []int32 // plus one; 0 is free
	used int
}

func newTable(size int) *table { return &table{hash: make([]uint64, size), at: make([]int32, size)} }

func (t *table) find(h uint64, is func(int32) bool) int32 {
	for k := h & uint64(len(t.at)-1); t.at[k] != 0; k = (k + 1) & uint64(len(t.at)-1) {
		if t.hash[k] == h && is(t.at[k]-1) {
			return t.at[k] - 1
		}
	}
	return -1
}

func (t *table) put(h uint64, x int32) {
	if 2*(t.used+1) > len(t.at) {
		old := *t
		*t = *newTable(2 * len(old.at))
		for k, a := range old.at {
			if a != 0 {
				t.put(old.hash[k], a-1)
			}
		}
	}
	k := h & uint64(len(t.at)-1)
	for t.at[k] != 0 {
		k = (k + 1) & uint64(len(t.at)-1)
	}
	t.hash[k], t.at[k] = h, x+1
	t.used++
}
