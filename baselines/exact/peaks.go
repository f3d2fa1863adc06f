package exact

import (
	"cmp"
	"math"
	"slices"

	"placer/baselines/budget"
	"placer/internal/words"
	"placer/plan"
	"placer/sim"
)

// peaks is a branch and bound over placements of units under the problem's
// scheduler, by the peak of the fullest device. Whatever the order, a device holds
// all its ops' resident bytes and, while an op runs, what that reads and makes.
type peaks struct {
	*table
	track   *budget.Tracker
	order   []int     // units, the largest first
	working []float64 // [U] most bytes beside the resident that an op of the unit needs

	device []uint8   // [N]
	used   []int     // [D] units
	held   []float64 // [D] resident bytes
	most   []float64 // [D] largest working
	best   float64

	nodes, limit int
	stopped      bool
}

// peaks searches for the lowest peak; the problem's evaluator judges by it.
func (e Exact) peaks(p *plan.Problem, track *budget.Tracker) *Proof {
	s := newPeaks(newTable(p), track)
	s.limit = e.limit(p)
	proof := &Proof{Bound: float64(sim.PeakBound(p.Graph, s.d))}
	if x := track.Try(s.device); x.Feasible() { // everything on the first device
		s.best = x.Value
	}
	s.place(0)
	proof.Nodes = s.nodes
	switch best := track.Best(); {
	case best.Feasible() && best.Value <= proof.Bound:
		proof.Optimal = true
		track.Note("OPTIMAL over all placements under any scheduler: the peak meets its bound, %s", words.Count(s.nodes, "node", "nodes"))
	case s.stopped && best.Feasible():
		track.Note("best found: stopped after %s; bound %.6g bytes, gap %.2f%%", words.Count(s.nodes, "node", "nodes"), proof.Bound, 100*(best.Value/proof.Bound-1))
	case s.stopped:
		track.Note("best found: stopped after %s, and it does not fit", words.Count(s.nodes, "node", "nodes"))
	case best.Feasible():
		proof.Optimal, proof.Bound = true, best.Value
		track.Note("OPTIMAL over all placements under the scheduler: proven with %s", words.Count(s.nodes, "node", "nodes"))
	default:
		track.Note("nothing fits under the scheduler: proven with %s", words.Count(s.nodes, "node", "nodes"))
	}
	return proof
}

func newPeaks(t *table, track *budget.Tracker) *peaks {
	s := &peaks{table: t, track: track, working: make([]float64, t.units.NumUnits()), device: make([]uint8, t.n), used: make([]int, t.d),
		held: make([]float64, t.d), most: make([]float64, t.d), best: math.Inf(1)}
	working := sim.NewWorking(t.p.Graph)
	for u, ops := range t.units.Ops {
		s.order = append(s.order, u)
		for _, i := range ops {
			s.working[u] = max(s.working[u], float64(working.Bytes(i)))
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.resident[b], t.resident[a]), cmp.Compare(s.working[b], s.working[a]))
	})
	return s
}

// place decides the k-th unit and those after it.
func (s *peaks) place(k int) {
	if k == len(s.order) {
		if s.stopped = s.stopped || s.track.Done(); s.stopped {
			return
		}
		if x := s.track.Try(s.device); x.Feasible() {
			s.best = min(s.best, x.Value)
		}
		return
	}
	type child struct {
		d    int
		peak float64
	}
	u := s.order[k]
	var children []child
	for d := range s.d {
		if s.open(d, s.used) {
			children = append(children, child{d, s.held[d] + float64(s.resident[u]) + max(s.most[d], s.working[u])})
		}
	}
	slices.SortStableFunc(children, func(a, b child) int { return cmp.Compare(a.peak, b.peak) })
	for _, c := range children {
		if c.peak >= s.best || c.peak > float64(s.p.Machine.Devices[c.d].Memory) {
			continue
		}
		if s.nodes++; s.limit > 0 && s.nodes >= s.limit || s.nodes%256 == 0 && s.track.Done() {
			s.stopped = true
		}
		if s.stopped {
			return
		}
		held, most := s.held[c.d], s.most[c.d]
		s.held[c.d], s.most[c.d] = held+float64(s.resident[u]), max(most, s.working[u])
		s.used[c.d]++
		for _, i := range s.units.Ops[u] {
			s.device[i] = uint8(c.d)
		}
		s.place(k + 1)
		s.used[c.d]--
		s.held[c.d], s.most[c.d] = held, most
	}
}
