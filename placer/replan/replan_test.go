package replan_test

import (
	"context"
	"errors"
	"testing"

	"placer/baselines/search/local"
	"placer/graph"
	"placer/placer/problem"
	"placer/placer/replan"
	"placer/plan"
	"placer/units"
)

// lose returns a problem on a machine of four devices without device lost, and a plan of all four by the
// numbers of the three that are left.
func lose(t *testing.T, lost int) (*problem.Problem, []uint8) {
	t.Helper()
	whole, err := problem.Workload("llama:layers=6,hidden=256,heads=4,kv_heads=4,ffn=512,seq=64,vocab=1000,batch=4", "a100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole.Budget = plan.Budget{Evaluations: 300}
	o, err := local.Placer{}.Place(context.Background(), &whole.Problem)
	if err != nil {
		t.Fatal(err)
	}
	var keep []int
	to := make([]uint8, 4)
	for d := range 4 {
		if to[d] = replan.Lost; d != lost {
			to[d] = uint8(len(keep))
			keep = append(keep, d)
		}
	}
	p, err := whole.On(whole.Machine.Keep(keep))
	if err != nil {
		t.Fatal(err)
	}
	p.Budget = plan.Budget{Evaluations: 600}
	old := make([]uint8, len(o.Device))
	for i, d := range o.Device {
		old[i] = to[d]
	}
	return p, old
}

// TestLostDevice: no more moves than allowed, what moves is counted right, and the plan is no
// worse than one that moves what is forced alone.
func TestLostDevice(t *testing.T) {
	for lost := range 4 {
		p, old := lose(t, lost)
		var forced, held units.Bytes
		for i, d := range old {
			held += p.Graph.Op(graph.OpID(i)).Resident
			if d == replan.Lost {
				forced += p.Graph.Op(graph.OpID(i)).Resident
			}
		}
		limit := forced + held/10
		o, err := replan.Find(context.Background(), p, old, limit)
		if err != nil {
			t.Fatal(err)
		}
		var moved units.Bytes
		for i, d := range o.Device {
			if d != old[i] {
				moved += p.Graph.Op(graph.OpID(i)).Resident
			}
		}
		if o.Moved != moved || moved > limit || o.Forced != forced || o.Held != held {
			t.Errorf("device %d lost: %v of %v moved (%v forced), limit %v; counted %v", lost, o.Moved, o.Held, o.Forced, limit, moved)
		}
		if o.Kept.Better(o.Score) {
			t.Errorf("device %d lost: %+v, what moves least has %+v", lost, o.Score, o.Kept)
		}
		if err := (&plan.Plan{Decision: plan.Decision{Device: o.Device}}).Check(p.Graph, p.Machine); err != nil {
			t.Error(err)
		}
	}
}

func TestLimitTooLow(t *testing.T) {
	p, old := lose(t, 0)
	if _, err := replan.Find(context.Background(), p, old, 1); !errors.Is(err, replan.ErrLimit) {
		t.Errorf("error %v, want %v", err, replan.ErrLimit)
	}
	if _, err := replan.Find(context.Background(), p, old[1:], -1); err == nil {
		t.Error("a plan of another graph was taken")
	}
}
