package anneal

import (
	"cmp"
	"slices"

	"placer/graph/unit"
	"placer/units"
)

// Allowance bounds what a placement costs beside its step, such as the bytes of weights that
// are loaded onto devices that did not hold them. Moves keep to it: of a move that costs more, as
// many decisions are taken back as it takes, so that weights stay where they may not go and what
// reads them goes. A start that costs more has its dearest decisions changed first.
type Allowance struct {
	Cost [][]units.Bytes // [N][D] of each op on each device; nil where nothing
	Most units.Bytes
}

// allowance is what decisions cost. It is shared by replicas and does not change.
type allowance struct {
	cost  [][]units.Bytes // [U][D]; nil where nothing
	least []uint8         // [U] the device where a decision costs least
	order []int32         // decisions that cost something, those first for which it matters most
	most  units.Bytes
}

// of returns what the decisions of fine cost on n devices; nil where a is.
func (a *Allowance) of(fine *unit.Partition, n int) *allowance {
	if a == nil {
		return nil
	}
	x := &allowance{cost: make([][]units.Bytes, fine.NumUnits()), least: make([]uint8, fine.NumUnits()), most: a.Most}
	matters := make([]units.Bytes, len(x.cost))
	for u, ops := range fine.Ops {
		for _, i := range ops {
			if a.Cost[i] == nil {
				continue
			}
			if x.cost[u] == nil {
				x.cost[u] = make([]units.Bytes, n)
			}
			for d, b := range a.Cost[i] {
				x.cost[u][d] += b
			}
		}
		if x.cost[u] == nil {
			continue
		}
		for d, b := range x.cost[u] {
			if b < x.cost[u][x.least[u]] {
				x.least[u] = uint8(d)
			}
		}
		if matters[u] = slices.Max(x.cost[u]) - x.cost[u][x.least[u]]; matters[u] > 0 {
			x.order = append(x.order, int32(u))
		}
	}
	slices.SortStableFunc(x.order, func(u, v int32) int { return cmp.Compare(matters[v], matters[u]) })
	return x
}

// beyond returns what decision u costs on device d beyond the least.
func (x *allowance) beyond(u int32, d uint8) units.Bytes {
	if x == nil || x.cost[u] == nil {
		return 0
	}
	return x.cost[u][d] - x.cost[u][x.least[u]]
}

// affords reports whether u may be on device d where all decisions, u at its least, cost used.
func (x *allowance) affords(u int32, d uint8, used units.Bytes) bool {
	b := x.beyond(u, d)
	return b == 0 || used+b <= x.most
}

// binds reports whether u, on device d, may go nowhere else where all decisions cost used.
func (x *allowance) binds(u int32, d uint8, used units.Bytes) bool {
	if x == nil || x.cost[u] == nil {
		return false
	}
	used -= x.beyond(u, d)
	for other := range x.cost[u] {
		if uint8(other) != d && x.affords(u, uint8(other), used) {
			return false
		}
	}
	return true
}

// spend returns what decisions cost.
func (x *allowance) spend(now []uint8) (b units.Bytes) {
	if x == nil {
		return 0
	}
	for u, cost := range x.cost {
		if cost != nil {
			b += cost[now[u]]
		}
	}
	return b
}

// afford changes the decisions of w that cost most until all are allowed, or cost least.
func (w *replica) afford() {
	x := w.allowance
	if x == nil {
		return
	}
	for _, u := range x.order {
		if w.used <= x.most {
			return
		}
		if d := x.least[u]; x.cost[u][d] < x.cost[u][w.now[u]] {
			w.put(u, d)
		}
	}
}

// comply takes back what the move under way costs beyond the allowance, its last changes first.
func (w *replica) comply() {
	x := w.allowance
	if x == nil {
		return
	}
	for k := len(w.undo) - 1; k >= 0 && w.used > x.most; k-- {
		if k >= len(w.undo) {
			continue
		}
		c := w.undo[k]
		if cost := x.cost[c.u]; cost == nil || cost[w.now[c.u]] <= cost[c.old] {
			continue
		}
		w.book(c.u, c.old)
		left := slices.DeleteFunc(w.undo[k:], func(b changed) bool { return b.u == c.u })
		w.undo = w.undo[:k+len(left)]
	}
}
