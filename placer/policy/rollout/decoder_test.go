package rollout

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph/unit"
	"placer/placer/problem/problemtest"
	"placer/plan"
)

func candidate(p *plan.Problem) *Candidate { return (&Run{Problem: p}).NewCandidate() }

// TestDecode compares plans with what their definition gives: a stable sort by
// place plus shift, and fusion levels by unit and kind.
func TestDecode(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.AllTasks)
	p.Tasks = plan.AllTasks
	d := NewDecoder(p)
	r := rand.New(rand.NewPCG(1, 2))
	for _, one := range []bool{false, true} {
		d.On(p.Units.Levels[unit.Chain], one)
		u := d.Units.NumUnits()
		var action []int32
		for _, a := range []struct{ n, levels int }{{u, 2}, {u, scheduleLevels}, {u * d.kinds, fusionLevels}} {
			for range a.n {
				action = append(action, int32(r.IntN(a.levels)))
			}
		}
		w := candidate(p)
		d.Decode(action, w)
		check := plan.Plan{Decision: w.Decision}
		if err := check.Check(p.Graph, p.Machine); err != nil {
			t.Fatal(err)
		}
		byPlace := make([]int, p.Graph.NumOps())
		for i := range byPlace {
			byPlace[i] = i
		}
		place := func(i int) int32 { return p.Priority[i] + d.shift[action[u+int(d.Units.Of[i])]] }
		slices.SortStableFunc(byPlace, func(a, b int) int {
			return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(p.Priority[a], p.Priority[b]))
		})
		for rank, i := range byPlace {
			if w.Priority[i] != int32(rank) {
				t.Fatalf("op %d has rank %d, want %d", i, w.Priority[i], rank)
			}
		}
		used := map[uint8]bool{}
		for i, v := range d.Units.Of {
			if w.Device[i] != uint8(action[v]) {
				t.Fatalf("op %d is on device %d, its unit's choice is %d", i, w.Device[i], action[v])
			}
			if one {
				v = 0
			}
			want := uint8(0)
			if d.kind[i] != noKind {
				used[d.kind[i]] = true
				want = uint8(action[2*u+int(v)*d.kinds+int(d.kind[i])])
			}
			if w.Fusion[i] != want {
				t.Fatalf("op %d has fusion priority %d, want %d", i, w.Fusion[i], want)
			}
		}
		if len(used) != d.kinds || d.kinds != mostKinds {
			t.Errorf("%d kinds of ops with %d in use, want %d", d.kinds, len(used), mostKinds)
		}
		advantages := slices.Repeat([]float32{1}, len(action))
		d.ClearIdle(advantages)
		for k, a := range advantages {
			if idle := one && k >= 2*u+d.kinds; (a == 0) != idle {
				t.Fatalf("choice %d has advantage %g, idle %v", k, a, idle)
			}
		}
	}
}

// TestMiddleLevels leave the scheduler as it is.
func TestMiddleLevels(t *testing.T) {
	p := problemtest.OnP100s(t, "wavenet2", 2, plan.AllTasks)
	p.Tasks = plan.Schedule
	p.Device = make([]uint8, p.Graph.NumOps())
	d := NewDecoder(p)
	d.On(p.Units.Levels[unit.Cell], false)
	w := candidate(p)
	d.Decode(slices.Repeat([]int32{scheduleLevels / 2}, d.Units.NumUnits()), w)
	if !slices.Equal(w.Priority, p.Priority) {
		t.Error("the middle level changes the order")
	}
}
