package phase

import "math"

// greedy fills s op by op: the least loaded device takes, of the ops whose inputs
// have reached it, the one of highest priority. A device that finds none takes
// part in the next exchange, unless another finds an op that ends no later than
// slack behind it.
func (s *state) greedy(priority []float64, slack float64, waits []int32) {
	x := s.x
	n, d := len(x.ops), x.devices
	var ready []int32
	for v := range int32(n) {
		waits[v] = int32(len(x.preds(v)))
		if waits[v] == 0 {
			ready = append(ready, v)
		}
	}
	free := make([]float64, d)
	k := int32(0)
	pick := func(to uint8) int {
		best := -1
		for i, v := range ready {
			if best >= 0 && priority[v] <= priority[ready[best]] {
				continue
			}
			here := true
			for _, u := range x.preds(v) {
				if s.device[u] != to && s.phase[u] == k {
					here = false
					break
				}
			}
			if here {
				best = i
			}
		}
		return best
	}
	for left := n; left > 0; {
		first := uint8(0)
		for to := 1; to < d; to++ {
			if free[to] < free[first] {
				first = uint8(to)
			}
		}
		to, i := first, pick(first)
		if i < 0 && slack > 0 {
			least := math.Inf(1)
			for other := range uint8(d) {
				if other == first {
					continue
				}
				if j := pick(other); j >= 0 {
					if late := free[other] + x.time[ready[j]] - free[first]; late <= slack && late < least {
						to, i, least = other, j, late
					}
				}
			}
		}
		if i < 0 { // exchange
			latest := free[0]
			for _, t := range free {
				latest = max(latest, t)
			}
			for to := range free {
				free[to] = latest
			}
			k++
			continue
		}
		v := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		s.device[v], s.phase[v] = to, k
		free[to] += x.time[v]
		left--
		for _, w := range x.succs(v) {
			if waits[w]--; waits[w] == 0 {
				ready = append(ready, w)
			}
		}
	}
	s.phases = int(k) + 1
	s.recount()
}
