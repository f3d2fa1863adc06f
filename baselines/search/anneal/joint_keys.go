package anneal

import (
	"cmp"
	"slices"
)

// keys is a priority that moves can change: each op has a key, and ops run by
// ascending key, of equal ones the lowest id first.
type keys struct {
	key    []float64 // [N]
	order  []int32   // [N] ops by key
	rank   []int32   // [N]
	next   []int32   // [N] scratch: the order to come
	moved  []bool    // [N] scratch
	old    []keyChange
	before []int32 // [N] order before the move under way
	dirty  bool
}

type keyChange struct {
	op  int32
	old float64
}

func newKeys(n int) *keys {
	return &keys{key: make([]float64, n), order: make([]int32, n), rank: make([]int32, n), next: make([]int32, n), moved: make([]bool, n), before: make([]int32, n)}
}

// set takes over a priority; what was before is forgotten.
func (k *keys) set(rank []int32) {
	copy(k.rank, rank)
	for i, r := range rank {
		k.order[r] = int32(i)
		k.key[i] = float64(r)
	}
	k.keep()
}

func (k *keys) changed() bool { return k.dirty }

// keep makes the present priority the one that undo returns to.
func (k *keys) keep() {
	k.old, k.dirty = k.old[:0], false
}

// undo returns to where keep was last called.
func (k *keys) undo() {
	if !k.dirty {
		return
	}
	for i := len(k.old) - 1; i >= 0; i-- {
		k.key[k.old[i].op] = k.old[i].old
	}
	copy(k.order, k.before)
	for r, i := range k.order {
		k.rank[i] = int32(r)
	}
	k.keep()
}

// shift adds delta to the keys of ops.
func (k *keys) shift(ops []int32, delta float64) {
	if len(ops) == 0 || delta == 0 {
		return
	}
	if !k.dirty {
		copy(k.before, k.order)
		k.dirty = true
	}
	for _, i := range ops {
		k.old = append(k.old, keyChange{i, k.key[i]})
		k.key[i] += delta
		k.moved[i] = true
	}
	// What has not moved is in order already, and so is what has: merge.
	ahead := k.next[:0]
	for _, i := range k.order {
		if k.moved[i] {
			ahead = append(ahead, i)
		}
	}
	moved := slices.Clone(ahead)
	out, m := k.next[:0], 0
	for _, i := range k.order {
		if k.moved[i] {
			continue
		}
		for m < len(moved) && k.less(moved[m], i) {
			out = append(out, moved[m])
			m++
		}
		out = append(out, i)
	}
	out = append(out, moved[m:]...)
	k.next, k.order = k.order, out
	for r, i := range k.order {
		k.rank[i] = int32(r)
	}
	for _, i := range ops {
		k.moved[i] = false
	}
}

func (k *keys) less(a, b int32) bool {
	if c := cmp.Compare(k.key[a], k.key[b]); c != 0 {
		return c < 0
	}
	return a < b
}
