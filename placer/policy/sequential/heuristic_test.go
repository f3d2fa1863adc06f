package sequential

import (
	"math/rand/v2"
	"testing"

	"placer/baselines/rules"
)

// TestPriorIsFollowed: a policy that has learned nothing and takes the best places as
// its prior does; by the expert's rule that is the expert's placement, but for the
// names of devices.
func TestPriorIsFollowed(t *testing.T) {
	s := instanceOf(t, small)
	p, err := NewPolicy(Config{Hidden: 4}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	clear(p.net.last.Value)
	e := newRollouts(p.net, s)
	e.roll([]heuristic{{rule: expertRule}}, rolling{choose: sampler([]float32{0}, nil, s.d)})
	want := s.labels(rules.ExpertDevices(s.problem))
	name := map[int32]int32{}
	for u, d := range e.states[0].device {
		if _, ok := name[want[u]]; !ok {
			name[want[u]] = d
		}
		if name[want[u]] != d {
			t.Errorf("unit %d is on device %d, the expert's %d is on %d", u, d, want[u], name[want[u]])
		}
	}
}

// TestPriorIsAllowedAndCheapest: whatever the prior and the state, the device that it
// chooses is allowed, and no allowed one costs less.
func TestPriorIsAllowedAndCheapest(t *testing.T) {
	s := instanceOf(t, small)
	p := policy(t, 4)
	for _, g := range heuristics() {
		e := newRollouts(p.net, s)
		r := rand.New(rand.NewPCG(7, 7))
		e.roll([]heuristic{g}, rolling{refinements: 1, choose: func(_ int, u int32, _ []float32, ok []bool) int32 {
			x := e.states[0]
			a := int32(none)
			for d := range ok {
				if e.y[d*numDeviceFeatures+priorFeature] == 1 {
					a = int32(d)
				}
			}
			if a == none || !ok[a] {
				t.Fatalf("%+v chooses device %d for unit %d, allowed are %v", g, a, u, ok)
			}
			for d := range ok {
				if ok[d] && x.cost[d] < x.cost[a] {
					t.Fatalf("%+v chooses device %d at %g for unit %d, device %d is at %g", g, a, x.cost[a], u, d, x.cost[d])
				}
			}
			for {
				if d := r.IntN(len(ok)); ok[d] {
					return int32(d)
				}
			}
		}})
	}
}
