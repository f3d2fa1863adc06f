package search

import (
	"placer/graph"
	"placer/plan"
	"placer/units"
)

// tie is the share by which two values may differ and count as equal: more than the
// rounding of sums over ops, less than any figure that is printed.
const tie = 1e-6

// tied reports whether value is as good as best.
func tied(value, best float64) bool { return value <= best*(1+tie) }

// Traffic returns the bytes that pass between devices in one step: a tensor goes once to
// every other device that reads it.
func Traffic(g *graph.Graph, device []uint8) (b units.Bytes) {
	for t := range graph.TensorID(g.NumTensors()) {
		b += traffic(g, device, t)
	}
	return b
}

// traffic returns the bytes of tensor t that pass between devices.
func traffic(g *graph.Graph, device []uint8, t graph.TensorID) (b units.Bytes) {
	x := g.Tensor(t)
	var sent [256]bool
	for _, c := range g.Consumers(t) {
		if d := device[c]; d != device[x.Producer] && !sent[d] {
			sent[d] = true
			b += x.Bytes
		}
	}
	return b
}

// choose returns the index of the best row, -1 where there is none. Of rows that are
// equal but for tie, the one on the fewest devices counts, then the one with the least
// traffic, then the better one, then the first.
func choose(g *graph.Graph, rows []*Row) int {
	best := -1
	for k, r := range rows {
		if r != nil && (best < 0 || r.better(rows[best])) {
			best = k
		}
	}
	if best < 0 {
		return best
	}
	top := rows[best]
	devices, bytes := plan.DevicesOf(top.Device), Traffic(g, top.Device)
	for k, r := range rows {
		if r == nil || r.Score.Overflow != top.Score.Overflow || r.Unmeasured != top.Unmeasured || !tied(r.Score.Value, top.Score.Value) {
			continue
		}
		n := plan.DevicesOf(r.Device)
		if n > devices {
			continue
		}
		if b := Traffic(g, r.Device); n < devices || b < bytes {
			best, devices, bytes = k, n, b
		}
	}
	return best
}
