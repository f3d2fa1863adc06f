package transfer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"placer/baselines/human"
)

// TestAdviceIsTaken: a policy that has learned nothing and takes the best places as
// its guide does; by the expert's rule that is the expert's placement, but for the
// names of devices.
func TestAdviceIsTaken(t *testing.T) {
	s := scene(t, small)
	p, err := NewPolicy(Config{Hidden: 4}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	clear(p.net.last.Value)
	f, e := &pass{n: p.net}, &episodes{}
	f.units(s.static)
	e.roll(s, f, []Guide{{Rule: ByExpert}}, 0, false, sampler([]float32{0}, nil, s.d))
	want := s.Labels(human.Devices(s.problem))
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

// TestAdviceIsAllowedAndCheapest: whatever the guide and the state, the device
// advised is allowed, and no allowed one costs less.
func TestAdviceIsAllowedAndCheapest(t *testing.T) {
	s := scene(t, small)
	p := policy(t, 4)
	f := &pass{n: p.net}
	f.units(s.static)
	for _, g := range Guides() {
		e := &episodes{}
		r := rand.New(rand.NewPCG(7, 7))
		e.roll(s, f, []Guide{g}, 1, false, func(_ int, u int32, _ []float32, ok []bool) int32 {
			x := e.states[0]
			a := int32(none)
			for d := range ok {
				if e.y[d*numDynamic+advised] == 1 {
					a = int32(d)
				}
			}
			if a == none || !ok[a] {
				t.Fatalf("%+v advises device %d for unit %d, allowed are %v", g, a, u, ok)
			}
			for d := range ok {
				if ok[d] && x.cost[d] < x.cost[a] {
					t.Fatalf("%+v advises device %d at %g for unit %d, device %d is at %g", g, a, x.cost[a], u, d, x.cost[d])
				}
			}
			for {
				if d := r.IntN(len(ok)); ok[d] {
					return int32(d)
				}
			}
		})
	}
}

// TestRevisionKnowsItsDraft: after one greedy draft the soonest counts, and a
// revision's loads begin with all of the draft's.
func TestRevisionKnowsItsDraft(t *testing.T) {
	s := scene(t, small)
	p := policy(t, 4)
	f, e := &pass{n: p.net}, &episodes{}
	f.units(s.static)
	ends := []float64{}
	for drafts := range revisions {
		e.roll(s, f, Guides()[:1], drafts, false, sampler([]float32{0}, nil, s.d))
		ends = append(ends, e.states[0].clock)
	}
	if got := e.states[0].soonest; got != slices.Min(ends) {
		t.Errorf("the soonest of %v is %g", ends, got)
	}
	x := e.states[0]
	load, device := slices.Clone(x.load), slices.Clone(x.device)
	x.revise()
	if !slices.Equal(x.pending, load) || !slices.Equal(x.planned, device) || slices.Max(x.load) > 0 {
		t.Errorf("pending %v of load %v, load now %v", x.pending, load, x.load)
	}
}

// TestTimeline compares a timeline with a list of all that was booked, as long as
// its gaps are few enough to be kept.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line timeline
		var booked []gap
		for range rapid.IntRange(1, maxGaps).Draw(t, "n") {
			ready, length := float64(rapid.IntRange(0, 40).Draw(t, "ready")), float64(rapid.IntRange(1, 6).Draw(t, "length"))
			want := ready
			for moved := true; moved; {
				moved = false
				for _, b := range booked {
					if want < b.end && want+length > b.start {
						want, moved = b.end, true
					}
				}
			}
			got := line.earliest(ready, length)
			if got != want {
				t.Fatalf("%g seconds ready at %g start at %g, want %g; booked %v, gaps %v", length, ready, got, want, booked, line.gaps[:line.n])
			}
			line.book(got, length)
			booked = append(booked, gap{got, got + length})
		}
	})
}

// TestAdvantages: samples are measured against those of the same guide.
func TestAdvantages(t *testing.T) {
	r := []float32{-1, -2, -1, -2, -5, -5, -5, -5}
	advantages(r, 4)
	if r[0] <= 0 || r[1] != -r[0] || r[2] != r[0] || r[4] != 0 || r[7] != 0 {
		t.Errorf("advantages %v", r)
	}
}
