package anneal

import (
	"math/rand/v2"

	"placer/graph/unit"
)

// listedStarts is how many list-scheduled placements a run begins with that makes
// decisions anew and has no start.
const listedStarts = 8

// open tries the starts.
func (r *run) open() error {
	starts := r.starts
	if r.Recreate && len(r.Starts) == 0 {
		listed, err := r.listed(listedStarts)
		if err != nil {
			return err
		}
		starts = func() [][]uint8 { return listed }
	}
	for k, s := range starts() {
		if k > 0 && r.done() {
			break
		}
		r.try(s)
	}
	return nil
}

// starts returns placements to begin with: the given ones, all on one device,
// cells in forward order in contiguous blocks of even time, with counterparts and
// weights, chains at random, and blocks of an unrolled network's time steps.
func (r *run) starts() [][]uint8 {
	var out [][]uint8
	out = append(out, r.Starts...)
	if r.Cool > 0 && len(out) > 0 {
		return out
	}
	n := r.p.Graph.NumOps()
	out = append(out, make([]uint8, n))
	out = append(out, r.p.Units.Blocks(r.p.Evaluator.OpSeconds(0), r.p.Machine.NumDevices()))
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
	out = append(out, x)
	if t := r.p.Units.ByTimeStep(r.p.Graph); t != nil {
		out = append(out, t.Blocks(r.p.Evaluator.OpSeconds(0), r.p.Machine.NumDevices()))
	}
	return out
}
