package listsched

import (
	"placer/graph"
	"placer/units"
)

// topo returns the device of each group, [K]: groups in the order of their first
// node fill devices one by one, up to the mean of the memory over devices plus the
// largest group's (section 3.2.1 of the paper), but no further than room. What
// fits nowhere goes where most is left.
func (m *model) topo(room []units.Bytes) []int {
	var all, largest units.Bytes
	for _, b := range m.memory {
		all += b
		largest = max(largest, b)
	}
	limit := all/units.Bytes(m.d) + largest
	of := make([]int, len(m.memory))
	for k := range of {
		of[k] = none
	}
	held := make([]units.Bytes, m.d)
	d := 0
	for v := range m.g.NumOps() {
		k := m.group[graph.OpID(v)]
		if of[k] != none {
			continue
		}
		for d+1 < m.d && held[d]+m.memory[k] > min(limit, room[d]) {
			d++
		}
		e := d
		if held[e]+m.memory[k] > room[e] {
			e = roomiest(held, room)
		}
		of[k] = e
		held[e] += m.memory[k]
	}
	return of
}
