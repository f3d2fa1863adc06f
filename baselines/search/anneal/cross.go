package anneal

import (
	"math"

	"placer/internal/assignment"
	"placer/plan"
)

// renamed returns placement elite, [N], with devices of the same figures named so that as
// much work as possible is where it is in best, [N].
func renamed(p *plan.Problem, elite, best []uint8) []uint8 {
	ds := p.Machine.Devices
	seconds := p.Evaluator.OpSeconds(0)
	const least = 1e-12 // seconds of an op that takes none
	total := 0.0
	for _, s := range seconds {
		total += s + least
	}
	const all = 1 << 40 // whole numbers that stand for all work
	cost := make([][]int64, len(ds))
	for a := range cost {
		cost[a] = make([]int64, len(ds))
		for b := range cost[a] {
			if !ds[a].SameFigures(&ds[b]) {
				cost[a][b] = 4 * all // more than names that stay cost
			}
		}
	}
	for i, a := range elite {
		cost[a][best[i]] -= int64((seconds[i] + least) / total * all)
	}
	to := assignment.Least(cost)
	out := make([]uint8, len(elite))
	for i, a := range elite {
		out[i] = uint8(to[a])
	}
	return out
}

// cross takes over a part of an elite plan: what differs in order, in a group, from one
// device to another, or near a decision, with counterparts, partial gradients and mostly
// the weights that they read.
func (w *replica) cross() {
	e := w.elite[w.rng.IntN(len(w.elite))]
	w.differ = w.differ[:0]
	for u, d := range e {
		if w.now[u] != d {
			w.differ = append(w.differ, int32(u))
		}
	}
	if len(w.differ) == 0 {
		return
	}
	n := 1 + int(math.Pow(float64(len(w.differ)), w.rng.Float64()))
	weights := w.rng.IntN(4) > 0
	at := w.rng.IntN(len(w.differ))
	u := w.differ[at]
	switch w.rng.IntN(4) {
	case 0:
		for _, v := range w.differ[at:min(len(w.differ), at+n)] {
			w.takeOver(e, v, weights)
		}
	case 1:
		for _, v := range w.group[w.groupOf[u]] {
			w.takeOver(e, v, weights)
		}
	case 2:
		from, to := w.now[u], e[u]
		for _, v := range w.differ {
			if w.now[v] == from && e[v] == to {
				w.takeOver(e, v, weights)
			}
		}
	default:
		begin := len(w.undo)
		w.takeOver(e, u, weights)
		for k := begin; k < len(w.undo) && len(w.undo)-begin < n; k++ {
			near, _ := w.near.Neighbours(w.undo[k].u)
			for _, v := range near {
				w.takeOver(e, v, weights)
			}
		}
	}
}

// takeOver puts decision u, and what goes with it, where elite plan e has them.
func (w *replica) takeOver(e []uint8, u int32, weights bool) {
	w.set(u, e[u])
	if p := w.counterpart[u]; p >= 0 {
		w.set(p, e[p])
	}
	for _, v := range w.partial[u] {
		w.set(v, e[v])
	}
	if weights {
		for _, v := range w.own[u] {
			w.set(v, e[v])
		}
	}
}
