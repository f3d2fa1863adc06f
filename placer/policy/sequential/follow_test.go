package sequential

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFollowIsThePriorsChoice: a prior that is followed without the features of devices
// chooses what it chooses with them, and what is ready when is the same for all devices at
// once as for one after another.
func TestFollowIsThePriorsChoice(t *testing.T) {
	s, p := instanceOf(t, small), policy(t, 4)
	for _, g := range heuristics() {
		g.learned = 0
		e, r := newRollouts(p.net, s), rand.New(rand.NewPCG(7, 7))
		e.begin([]heuristic{g}, true)
		x, ok := e.states[0], make([]bool, s.d)
		for pass := range 2 {
			for _, st := range s.steps {
				if st.unit == none {
					x.run(st.node)
					continue
				}
				x.allowed(st.unit, ok)
				got := x.follow(st.unit, st.node, ok)
				x.survey(st.unit, st.node, ok)
				if got != x.facts.prior {
					t.Fatalf("%+v, pass %d, unit %d: device %d alone, %d beside the features", g, pass, st.unit, got, x.facts.prior)
				}
				if s.unit[st.node] == st.unit {
					for d, ready := range x.ready {
						if one := x.arrival.Ready(s.nodes.Graph, st.node, s.unit, x.device, x.finish, d, false); one != ready {
							t.Fatalf("node %d is ready on device %d at %g, or at %g", st.node, d, one, ready)
						}
					}
				}
				d := r.IntN(s.d)
				for !ok[d] {
					d = r.IntN(s.d)
				}
				x.decide(st.unit, int32(d))
			}
			x.refine()
		}
	}
}

// TestCommonFeatures: what the tables call common to all units, or to all devices of a
// decision, is.
func TestCommonFeatures(t *testing.T) {
	s, p := instanceOf(t, small), policy(t, 4)
	same := func(rows []float32, columns []column[unitFacts], width int) bool {
		for lo := 0; lo < len(rows); lo += width {
			for _, c := range columns {
				if rows[lo+c.at] != rows[c.at] {
					return false
				}
			}
		}
		return true
	}
	f, own := unitFacts{s: s, own: 1, span: 1, n: 1, memory: 1}, make([]float32, 2*numUnitFeatures)
	unitRows.first(&f, own)
	f.u, f.own, f.before, f.after, f.place, f.pieces, f.exchanged, f.neighbours = 1, 2, 3, 4, 5, 6, 7, 8
	unitRows.first(&f, own[numUnitFeatures:])
	if !same(own, unitRows.common, numUnitFeatures) {
		t.Error("a feature of the graph is not the same for all units")
	}
	e := newRollouts(p.net, s)
	e.roll(drawHeuristics(rand.New(rand.NewPCG(1, 2)), 1, 1), rolling{refinements: 1, choose: func(_ int, _ int32, _ []float32, ok []bool) int32 {
		x, rows := e.states[0], make([]float32, s.d*numDeviceFeatures)
		written := make([]float32, len(rows))
		x.write(written)
		for d := range s.d {
			f := &x.facts
			f.d, f.start, f.ready, f.free, f.load = d, x.start[d], x.ready[d], x.devices[d].Free(), x.expected[d]
			f.apart, f.number = f.decided-x.contact[d], float64(x.number[d])
			if x.number[d] == none {
				f.number = float64(x.used)
			}
			deviceRows.first(f, rows[d*numDeviceFeatures:(d+1)*numDeviceFeatures])
		}
		if !slices.Equal(rows, written) {
			t.Fatalf("features are %v, want %v", written, rows)
		}
		return int32(slices.Index(ok, true))
	}})
}
