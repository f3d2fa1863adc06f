package phase

import "slices"

// state is an assignment of devices and phases with its loads.
type state struct {
	x      *instance
	phases int
	device []uint8   // [n]
	phase  []int32   // [n]
	load   []float64 // [K,D]
	cost   float64   // sum over phases of the largest load

	joined []int32  // see gather
	seen   []uint32 // [n] stamp of the last gathering
	stamp  uint32
}

func newState(x *instance) *state {
	return &state{x: x, device: make([]uint8, len(x.ops)), phase: make([]int32, len(x.ops))}
}

func (s *state) copyFrom(o *state) {
	s.phases, s.cost = o.phases, o.cost
	copy(s.device, o.device)
	copy(s.phase, o.phase)
	s.load = append(s.load[:0], o.load...)
}

// most returns the largest load of phase k.
func (s *state) most(k int32) float64 {
	if s.x.devices == 2 {
		return max(s.load[2*k], s.load[2*k+1])
	}
	d := int32(s.x.devices)
	return slices.Max(s.load[k*d : k*d+d])
}

// recount computes loads and cost anew: sums of floats drift.
func (s *state) recount() {
	d := s.x.devices
	s.load = append(s.load[:0], make([]float64, s.phases*d)...)
	for v, k := range s.phase {
		s.load[int(k)*d+int(s.device[v])] += s.x.time[v]
	}
	s.cost = 0
	for k := range int32(s.phases) {
		s.cost += s.most(k)
	}
}

// window returns the phases that op v may be in on device d; none if lo > hi.
func (s *state) window(v int32, d uint8) (lo, hi int32) {
	x := s.x
	hi = int32(s.phases) - 1
	for _, u := range x.pred[x.predAt[v]:x.predAt[v+1]] {
		k := s.phase[u]
		if s.device[u] != d {
			k++
		}
		lo = max(lo, k)
	}
	for _, u := range x.succ[x.succAt[v]:x.succAt[v+1]] {
		k := s.phase[u]
		if s.device[u] != d {
			k--
		}
		hi = min(hi, k)
	}
	return lo, hi
}

// compact drops empty phases.
func (s *state) compact() {
	used := make([]int32, s.phases)
	for _, k := range s.phase {
		used[k] = 1
	}
	next := int32(0)
	for k, u := range used {
		used[k] = next
		next += u
	}
	for v := range s.phase {
		s.phase[v] = used[s.phase[v]]
	}
	s.phases = int(next)
	s.recount()
}
