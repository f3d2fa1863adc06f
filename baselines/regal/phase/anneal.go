package phase

import (
	"math"
	"math/rand/v2"
)

// anneal changes s by moves of one op, exchanges of two and flips of what is
// joined within a phase, accepting worse
// states with a probability that falls from temperature hot to cold, and keeps
// the best in best. It returns the number of moves tried, and stops early at a
// cost of at most goal.
func (s *state) anneal(best *state, moves int, hot, cold, goal float64, r *rand.Rand) int {
	const step = 512 // moves at one temperature
	n := uint64(len(s.x.ops))
	temperature := hot
	cool := math.Pow(cold/hot, step/float64(moves))
	for m := range moves {
		if m%step == 0 && m > 0 {
			temperature *= cool
			if m%(step*256) == 0 {
				s.recount()
			}
		}
		bits := r.Uint64()
		v := int32(bits >> 32 * n >> 32)
		var changed bool
		switch {
		case bits&0x70000000 == 0:
			changed = s.flip(v, temperature, r)
		case bits&1 == 0:
			changed = s.shift(v, uint32(bits), temperature, r)
		default:
			changed = s.exchange(v, int32(r.Uint64()>>32*n>>32), temperature, r)
		}
		if changed && s.cost < best.cost-1e-9 {
			best.copyFrom(s)
			if best.cost <= goal {
				return m + 1
			}
		}
	}
	return moves
}

// accept applies Metropolis' rule.
func accept(delta, temperature float64, r *rand.Rand) bool {
	return delta <= 0 || r.Float64() < math.Exp(-delta/temperature)
}

// shift moves op v to a device and a phase that its neighbours allow.
func (s *state) shift(v int32, bits uint32, temperature float64, r *rand.Rand) bool {
	d := int32(s.x.devices)
	from, at := s.phase[v], int32(s.device[v])
	to := int32(bits >> 1 & 1)
	if d > 2 {
		to = int32(bits >> 1 % uint32(d))
	}
	lo, hi := s.window(v, uint8(to))
	if lo > hi {
		return false
	}
	k := lo + int32(uint64(bits>>8)*uint64(hi-lo+1)>>24)
	if k == from && to == at {
		return false
	}
	t := s.x.time[v]
	before := s.most(from)
	if k != from {
		before += s.most(k)
	}
	s.load[from*d+at] -= t
	s.load[k*d+to] += t
	delta := s.most(from) - before
	if k != from {
		delta += s.most(k)
	}
	if !accept(delta, temperature, r) {
		s.load[from*d+at] += t
		s.load[k*d+to] -= t
		return false
	}
	s.phase[v], s.device[v] = k, uint8(to)
	s.cost += delta
	return true
}

// exchange lets v and w change places.
func (s *state) exchange(v, w int32, temperature float64, r *rand.Rand) bool {
	d := int32(s.x.devices)
	kv, kw := s.phase[v], s.phase[w]
	dv, dw := s.device[v], s.device[w]
	if kv == kw && dv == dw {
		return false
	}
	x := s.x.time[w] - s.x.time[v]
	before := s.most(kv)
	if kw != kv {
		before += s.most(kw)
	}
	s.load[kv*d+int32(dv)] += x
	s.load[kw*d+int32(dw)] -= x
	delta := s.most(kv) - before
	if kw != kv {
		delta += s.most(kw)
	}
	if accept(delta, temperature, r) {
		s.phase[v], s.device[v], s.phase[w], s.device[w] = kw, dw, kv, dv
		if s.fits(v) && s.fits(w) {
			s.cost += delta
			return true
		}
		s.phase[v], s.device[v], s.phase[w], s.device[w] = kv, dv, kw, dw
	}
	s.load[kv*d+int32(dv)] -= x
	s.load[kw*d+int32(dw)] += x
	return false
}

func (s *state) fits(v int32) bool {
	lo, hi := s.window(v, s.device[v])
	return lo <= s.phase[v] && s.phase[v] <= hi
}
