package exact

import (
	"cmp"
	"math"
	"slices"

	"placer/baselines/budget"
	"placer/units"
)

// tolerance is what a proof may be off by, relatively: a branch is cut when its
// bound is so close to the best plan.
const tolerance = 1e-9

// search is the state of a branch and bound.
type search struct {
	*bounder
	track  *budget.Tracker
	device []int8 // [N], or none
	used   []int  // [D] units
	held   []units.Bytes
	nodes  int
	limit  int // of nodes; 0: none

	best     float64 // seconds of the best feasible plan, or +Inf
	open     float64 // least bound of what was left out when the search was stopped
	differs  bool    // the evaluator follows other rules
	stopped  bool
	states   []*state
	seen     map[string]struct{}
	key      []byte
	final    []uint8
	priority []int32
}

func newSearch(t *table, track *budget.Tracker) *search {
	s := &search{bounder: newBounder(t), track: track, device: make([]int8, t.n), used: make([]int, t.d), held: make([]units.Bytes, t.d),
		best: math.Inf(1), open: math.Inf(1), final: make([]uint8, t.n), priority: make([]int32, t.n)}
	for i := range s.device {
		s.device[i] = none
	}
	for range t.n + 1 {
		s.states = append(s.states, newState(t))
	}
	return s
}

// cut reports whether nothing under a bound can be better than the best.
func (s *search) cut(bound float64) bool { return bound >= s.best*(1-tolerance) }

// visit counts a node and reports whether the search has to stop.
func (s *search) visit() bool {
	s.nodes++
	s.stopped = s.stopped || s.limit > 0 && s.nodes >= s.limit || s.nodes%256 == 0 && s.track.Done()
	return s.stopped
}

// place decides unit u and those after it.
func (s *search) place(u int) {
	if u == s.units.NumUnits() {
		s.dispatchAll()
		return
	}
	type child struct {
		d     int
		bound float64
	}
	var children []child
	for d := range s.d {
		if s.held[d]+s.resident[u] > s.p.Machine.Devices[d].Memory || !s.table.open(d, s.used) {
			continue
		}
		s.put(u, int8(d))
		children = append(children, child{d, s.placement(s.device)})
	}
	s.put(u, none)
	slices.SortStableFunc(children, func(a, b child) int { return cmp.Compare(a.bound, b.bound) })
	for _, c := range children {
		if s.cut(c.bound) {
			return // those that follow are no better
		}
		if s.stopped || s.visit() {
			s.open = min(s.open, c.bound)
			return
		}
		s.put(u, int8(c.d))
		s.used[c.d]++
		s.held[c.d] += s.resident[u]
		s.place(u + 1)
		s.held[c.d] -= s.resident[u]
		s.used[c.d]--
		s.put(u, none)
		if s.stopped {
			s.open = min(s.open, c.bound)
			return
		}
	}
}

// put places the ops of unit u.
func (s *search) put(u int, d int8) {
	for _, i := range s.units.Ops[u] {
		s.device[i] = d
	}
}
