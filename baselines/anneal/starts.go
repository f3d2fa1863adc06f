package anneal

import (
	"math/rand/v2"

	"placer/graph/unit"
)

// open tries the starts.
func (r *run) open() {
	for k, s := range r.starts() {
		if k > 0 && r.done() {
			return
		}
		r.try(s)
	}
	r.trace("start: %.2f ms", r.score.Seconds*1e3)
}

// starts returns placements to begin with: the given ones, all on one device,
// and cells in forward order in contiguous blocks of even time, with partners and
// weights.
func (r *run) starts() [][]uint8 {
	var out [][]uint8
	out = append(out, r.Starts...)
	n := r.p.Graph.NumOps()
	out = append(out, make([]uint8, n))
	out = append(out, r.blocks())
	ch := r.p.Units.Levels[unit.Chain]
	rng := rand.New(rand.NewPCG(r.p.Seed, 99))
	cd := make([]uint8, ch.NumUnits())
	for u := range cd {
		cd[u] = uint8(rng.IntN(r.p.Machine.NumDevices()))
	}
	x := make([]uint8, n)
	for i := range x {
		x[i] = cd[ch.Of[i]]
	}
	return append(out, x)
}

// blocks cuts the forward chains, in order of first op, into contiguous blocks of
// even time; the time of a chain counts its partner and the weights that it is
// the first to read.
func (r *run) blocks() []uint8 {
	h := r.p.Units
	ch := h.Levels[unit.Chain]
	seconds := r.p.Evaluator.OpSeconds(0)
	weight := make([]float64, ch.NumUnits())
	total := 0.0
	for i, u := range ch.Of {
		weight[u] += seconds[i]
		total += seconds[i]
	}
	lead := make([]int32, ch.NumUnits()) // the forward chain that decides
	for u := range lead {
		lead[u] = -1
	}
	for u := range lead {
		if h.Roles[unit.Chain] == nil || h.Roles[unit.Chain][u] == unit.Forward {
			lead[u] = int32(u)
			if h.Partners[unit.Chain] != nil {
				if p := h.Partners[unit.Chain][u]; p >= 0 && lead[p] < 0 {
					lead[p] = int32(u)
				}
				for _, v := range h.Reads[unit.Chain][u] {
					if lead[v] < 0 {
						lead[v] = int32(u)
					}
				}
			}
		}
	}
	sum := make([]float64, len(lead))
	for u, l := range lead {
		if l < 0 {
			lead[u] = 0
			l = 0
		}
		sum[l] += weight[u]
	}
	dev := make([]uint8, len(lead))
	acc := 0.0
	d := r.p.Machine.NumDevices()
	for u := range lead {
		if int(lead[u]) == u {
			dev[u] = uint8(min(d-1, int(float64(d)*(acc+sum[u]/2)/max(total, 1e-300))))
			acc += sum[u]
		}
	}
	out := make([]uint8, r.p.Graph.NumOps())
	for i, u := range ch.Of {
		out[i] = dev[lead[u]]
	}
	return out
}
