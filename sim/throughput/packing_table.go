package throughput

import (
	"cmp"
	"slices"
)

// packEntries bounds the entries of one program.
const packEntries = 4 << 20

// packEntry is a partial device load: what it takes, is worth, and comes from.
type packEntry struct {
	state uint32 // two bits a slot: 1 some held, 2 some not
	cost  int32
	value float64
	from  int32
	held  bool
}

// meet counts net: bit is 1 if the set at hand is held, 2 if not.
func (f *packEntry) meet(net packNet, bit uint32) {
	shift := 2 * net.slot
	was := f.state >> shift & 3
	if net.first {
		was = 0
	}
	now := was | bit
	if now == 3 && was != 3 {
		f.cost += net.weight
	}
	if net.last {
		now = 0
	}
	f.state = f.state&^(3<<shift) | now<<shift
}

// accelerator returns the most that one accelerator can hold in prices and the
// sets of such a load, [sets]; ok is false where the tables would have more than
// limit entries.
func (k *packing) accelerator(limit int) (value float64, held []bool, ok bool) {
	k.entries = append(k.entries[:0], packEntry{from: -1})
	begin := 0
	for at := range k.price {
		next := k.next[:0]
		for i := begin; i < len(k.entries); i++ {
			e := &k.entries[i]
			for _, held := range [2]bool{false, true} {
				if held && k.cost[at] > packGrid {
					continue
				}
				f := packEntry{state: e.state, cost: e.cost, value: e.value, from: int32(i), held: held}
				bit := uint32(2)
				if held {
					f.cost += k.cost[at]
					f.value += k.price[at]
					bit = 1
				}
				for _, net := range k.touches[at] {
					f.meet(net, bit)
				}
				if f.cost <= packGrid {
					next = append(next, f)
				}
			}
		}
		slices.SortFunc(next, func(a, b packEntry) int {
			return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.cost, b.cost), cmp.Compare(b.value, a.value))
		})
		k.next = next
		begin = len(k.entries)
		for i := range next {
			if n := len(k.entries); n > begin && k.entries[n-1].state == next[i].state && k.entries[n-1].value >= next[i].value {
				continue
			}
			k.entries = append(k.entries, next[i])
		}
		if len(k.entries) > limit {
			return 0, nil, false
		}
	}
	best := begin
	for i := begin; i < len(k.entries); i++ {
		if k.entries[i].value > k.entries[best].value {
			best = i
		}
	}
	held = make([]bool, len(k.price))
	for i, at := int32(best), len(k.price)-1; at >= 0; at-- {
		held[at] = k.entries[i].held
		i = k.entries[i].from
	}
	return k.entries[best].value, held, true
}
