package placer

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// TestDecode compares plans with what their definition gives: a stable sort by
// place plus shift, and fusion levels by unit and kind.
func TestDecode(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	p.Tasks = plan.AllTasks
	c := DefaultPolicy()
	d := newDecoder(p, c)
	r := rand.New(rand.NewPCG(1, 2))
	for _, one := range []bool{false, true} {
		d.part, d.lead = p.Units.Levels[unit.Chain], nil
		u := d.part.NumUnits()
		if one {
			d.lead = make([]int32, u)
		}
		var action []int32
		for _, a := range []struct{ n, levels int }{{u, 2}, {u, c.ScheduleLevels}, {u * d.kinds, c.FusionLevels}} {
			for range a.n {
				action = append(action, int32(r.IntN(a.levels)))
			}
		}
		w := d.newDraft(p.Graph.NumOps())
		d.decode(action, w)
		check := plan.Plan{Device: w.device, Priority: w.priority, Fusion: w.fusion}
		if err := check.Check(p.Graph, p.Machine); err != nil {
			t.Fatal(err)
		}
		byPlace := make([]int, p.Graph.NumOps())
		for i := range byPlace {
			byPlace[i] = i
		}
		place := func(i int) int32 { return p.Priority[i] + d.shift[action[u+int(d.part.Of[i])]] }
		slices.SortStableFunc(byPlace, func(a, b int) int {
			return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(p.Priority[a], p.Priority[b]))
		})
		for rank, i := range byPlace {
			if w.priority[i] != int32(rank) {
				t.Fatalf("op %d has rank %d, want %d", i, w.priority[i], rank)
			}
		}
		used := map[uint8]bool{}
		for i, v := range d.part.Of {
			if w.device[i] != uint8(action[v]) {
				t.Fatalf("op %d is on device %d, its unit's choice is %d", i, w.device[i], action[v])
			}
			if one {
				v = 0
			}
			want := uint8(0)
			if d.kind[i] != noKind {
				used[d.kind[i]] = true
				want = uint8(action[2*u+int(v)*d.kinds+int(d.kind[i])])
			}
			if w.fusion[i] != want {
				t.Fatalf("op %d has fusion priority %d, want %d", i, w.fusion[i], want)
			}
		}
		if len(used) != d.kinds || d.kinds != c.FusionKinds {
			t.Errorf("%d kinds of ops with %d in use, want %d", d.kinds, len(used), c.FusionKinds)
		}
		advantages := slices.Repeat([]float32{1}, len(action))
		d.idle(advantages)
		for k, a := range advantages {
			if idle := one && k >= 2*u+d.kinds; (a == 0) != idle {
				t.Fatalf("choice %d has advantage %g, idle %v", k, a, idle)
			}
		}
	}
}

// TestMiddleLevels leave the scheduler as it is.
func TestMiddleLevels(t *testing.T) {
	p := problem(t, "wavenet2", 2)
	p.Tasks = plan.Schedule
	p.Device = make([]uint8, p.Graph.NumOps())
	c := DefaultPolicy()
	for _, levels := range []int{1, 3, 5} {
		c.ScheduleLevels = levels
		d := newDecoder(p, c)
		d.part = p.Units.Levels[unit.Cell]
		w := d.newDraft(p.Graph.NumOps())
		d.decode(slices.Repeat([]int32{int32(levels / 2)}, d.part.NumUnits()), w)
		if !slices.Equal(w.priority, p.Priority) {
			t.Errorf("%d levels: the middle one changes the order", levels)
		}
	}
}

// TestTasks: the policy decides every subset of the tasks, leaves the rest as
// given, says truthfully what its plan takes, and its plan does not depend on
// the number of workers.
func TestTasks(t *testing.T) {
	base := problem(t, "trfxl2", 2)
	given := make([]uint8, base.Graph.NumOps())
	for i := range given {
		given[i] = uint8(base.Units.Levels[unit.Chain].Of[i] % 2)
		if k := base.Graph.Op(graph.OpID(i)).Group; k > 0 {
			given[i] = uint8(k % 2)
		}
	}
	for tasks := plan.Tasks(1); tasks <= plan.AllTasks; tasks++ {
		var first *plan.Outcome
		for _, workers := range []int{1, 2} {
			if workers > 1 && tasks != plan.AllTasks {
				continue
			}
			p := *base
			p.Evaluator, p.Tasks, p.Budget = base.Evaluator.Clone(), tasks, plan.Budget{Evaluations: 64}
			p.Fusion = slices.Repeat([]uint8{1}, p.Graph.NumOps())
			if !tasks.Has(plan.Place) {
				p.Device = given
			}
			c := DefaultPolicy()
			c.Workers = workers
			policy, err := NewPolicy(c)
			if err != nil {
				t.Fatal(err)
			}
			o, err := policy.Place(context.Background(), &p)
			if err != nil {
				t.Fatal(err)
			}
			if (o.Priority != nil) != tasks.Has(plan.Schedule) || (o.Fusion != nil) != tasks.Has(plan.Fuse) {
				t.Errorf("%v: outcome with priorities %v and fusion %v", tasks, o.Priority != nil, o.Fusion != nil)
			}
			if !tasks.Has(plan.Place) && !bytes.Equal(o.Device, given) {
				t.Errorf("%v: the given placement was changed", tasks)
			}
			priority, fusion := o.Priority, o.Fusion
			if priority == nil {
				priority = p.Priority
			}
			if fusion == nil {
				fusion = p.Fusion
			}
			if s := p.Evaluator.EvaluateFused(o.Device, priority, fusion); s != o.Score {
				t.Errorf("%v: score %v, evaluated %v", tasks, o.Score, s)
			}
			if first == nil {
				first = o
			} else if !bytes.Equal(first.Device, o.Device) || !slices.Equal(first.Priority, o.Priority) || !bytes.Equal(first.Fusion, o.Fusion) {
				t.Errorf("%v: %d workers give another plan", tasks, workers)
			}
		}
	}
	p := *base
	p.Tasks, p.Budget = plan.Fuse, plan.Budget{Evaluations: 10}
	policy, err := NewPolicy(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Place(context.Background(), &p); err == nil {
		t.Error("no placement and none to make: no error")
	}
}
