package phase

import "math/rand/v2"

// flip moves v and all ops that share its phase and are joined to it by edges
// within the phase to another device: such ops must stay together, and edges to
// other phases allow any device.
func (s *state) flip(v int32, temperature float64, r *rand.Rand) bool {
	d := int32(s.x.devices)
	k, at := s.phase[v], int32(s.device[v])
	sum := s.gather(v)
	to := (at + 1) % d
	if d > 2 {
		to = (at + 1 + int32(r.IntN(int(d-1)))) % d
	}
	before := s.most(k)
	s.load[k*d+at] -= sum
	s.load[k*d+to] += sum
	delta := s.most(k) - before
	if !accept(delta, temperature, r) {
		s.load[k*d+at] += sum
		s.load[k*d+to] -= sum
		return false
	}
	for _, u := range s.joined {
		s.device[u] = uint8(to)
	}
	s.cost += delta
	return true
}

// gather fills joined with v and what is joined to it within its phase, and
// returns the sum of their times.
func (s *state) gather(v int32) (sum float64) {
	if s.seen == nil {
		s.seen = make([]uint32, len(s.x.ops))
	}
	s.stamp++
	s.joined = append(s.joined[:0], v)
	s.seen[v] = s.stamp
	k := s.phase[v]
	for i := 0; i < len(s.joined); i++ {
		u := s.joined[i]
		sum += s.x.time[u]
		for _, list := range [2][]int32{s.x.preds(u), s.x.succs(u)} {
			for _, w := range list {
				if s.phase[w] == k && s.seen[w] != s.stamp {
					s.seen[w] = s.stamp
					s.joined = append(s.joined, w)
				}
			}
		}
	}
	return sum
}
