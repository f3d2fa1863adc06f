package sim

import (
	"context"

	"placer/graph/fuse"
)

// FusedLowerBound is LowerBound of all plans, with fusion or without.
//
// It is the bound of plans without fusion for shorter times. A kernel takes at
// least the sum of its ops' Compute and the longest of their launches, which is at
// least the sum of their launches over fuse.MaxOps. Let each op that could share a
// kernel take its part of that sum. Then the ops of a kernel run one after the
// other within its time, in the order of their dependencies, and what reads the
// kernel comes after all of them: every fused run contains a run without fusion of
// the shorter ops, with the same transfers or fewer, except that what is read for
// its shape alone may move without its bytes; and a bound of that is a bound of
// both.
func (s *Simulator) FusedLowerBound() *Bound {
	t := s.tables
	may := make([]bool, t.n)
	rules := s.rules()
	for _, u := range rules.Fusible() {
		may[u] = true
		for _, v := range rules.FusibleConsumers(u) {
			may[v] = true
		}
	}
	t.seconds = make([][]float64, t.d)
	for d := range t.d {
		for e := range d {
			if &s.seconds[e][0] == &s.seconds[d][0] && &t.layout.parts[e][0] == &t.layout.parts[d][0] {
				t.seconds[d] = t.seconds[e]
			}
		}
		if t.seconds[d] != nil {
			continue
		}
		t.seconds[d] = make([]float64, t.n)
		for i, x := range s.seconds[d] {
			if may[i] {
				p := &t.layout.parts[d][i]
				x = min(x, float64(p.Compute)+float64(p.Launch)/fuse.MaxOps)
			}
			t.seconds[d][i] = x
		}
	}
	return t.bound(context.Background(), true, false)
}
