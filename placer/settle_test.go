package placer

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"placer/graph/unit"
	"placer/plan"
)

// TestSettle: every plan that is told takes what is told of it, none is worse than
// the one before, the outcome is the last, and turns after the curricula find
// better ones, on the placement and near it.
func TestSettle(t *testing.T) {
	late, moved := 0, 0
	for _, tasks := range []plan.Tasks{plan.Place | plan.Schedule | plan.Fuse, plan.Place | plan.Schedule, plan.Place | plan.Fuse} {
		for _, given := range []bool{false, true} {
			p := problem(t, "trfxl2", 2)
			p.Tasks, p.Budget = tasks, plan.Budget{Evaluations: 500}
			if given {
				p.Device = p.Units.Blocks(p.Evaluator.OpSeconds(0), 2)
			}
			c := DefaultPolicy()
			var device []byte // of the plan told last
			var last plan.Progress
			evaluator := p.Evaluator.Clone()
			takes := func(o *plan.Outcome) plan.Score {
				if o.Priority == nil {
					o.Priority = p.Priority
				}
				return evaluator.EvaluateFused(o.Device, o.Priority, o.Fusion)
			}
			p.Report = func(x plan.Progress) {
				if x.Evaluations < last.Evaluations || last.Evaluations > 0 && last.Best.Better(x.Best) {
					t.Errorf("%v: %v after %d evaluations, then %v after %d", tasks, last.Best, last.Evaluations, x.Best, x.Evaluations)
				}
				if x.Device != nil {
					if s := takes(&plan.Outcome{Device: x.Device, Priority: x.Priority, Fusion: x.Fusion}); s != x.Best {
						t.Errorf("%v: told %v after %d evaluations, the plan takes %v", tasks, x.Best, x.Evaluations, s)
					}
					if x.Evaluations > 200+c.Joint.Samples {
						late++
						if !bytes.Equal(device, x.Device) {
							moved++
						}
					}
					device = bytes.Clone(x.Device)
				}
				last = x
			}
			policy, err := NewPolicy(c)
			if err != nil {
				t.Fatal(err)
			}
			o, err := policy.Place(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if s := takes(o); s != o.Score || s != last.Best {
				t.Errorf("%v: outcome %v, told %v, its plan takes %v", tasks, o.Score, last.Best, s)
			}
			if o.Evaluations != last.Evaluations || o.Evaluations > 500 || o.Evaluations < 400 {
				t.Errorf("%v: %d evaluations, told %d, of 500", tasks, o.Evaluations, last.Evaluations)
			}
		}
	}
	if moved == 0 || late == moved {
		t.Errorf("%d better plans in the last part, %d by moving", late, moved)
	}
}

// TestNear: units near a placement do not mix its devices, and a policy that
// hardly leaves the placement that it starts from comes to nothing worse.
func TestNear(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	r := rand.New(rand.NewPCG(8, 3))
	p.Device = make([]uint8, p.Graph.NumOps())
	for _, ops := range p.Units.Levels[unit.Segment].Ops {
		d := uint8(r.IntN(2))
		for _, i := range ops {
			p.Device[i] = d
		}
	}
	for _, s := range nearStages(curricula(p.Graph, p.Units, unit.Chain, p.Evaluator.OpSeconds(0), 2)[0], p.Device, 2) {
		for u, ops := range s.part.Ops {
			for _, i := range ops {
				if p.Device[i] != p.Device[ops[0]] || s.part.Of[i] != int32(u) {
					t.Fatalf("%s: op %d of unit %d is on device %d beside %d", s.name, i, u, p.Device[i], p.Device[ops[0]])
				}
			}
		}
	}
	c := DefaultPolicy()
	c.Joint.Favour = 40
	p.Budget.Evaluations = 64
	o, err := (&Policy{config: c, near: true}).Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if given := p.Evaluate(p.Device); given.Better(o.Score) {
		t.Errorf("near a placement of %v the best is %v", given, o.Score)
	}
}

// TestSettleStops: a search that is stopped in the last stage ends with what it
// has.
func TestSettleStops(t *testing.T) {
	p := problem(t, "wavenet2", 2)
	p.Tasks, p.Budget = plan.Place|plan.Schedule|plan.Fuse, plan.Budget{Evaluations: 200}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p.Report = func(x plan.Progress) {
		if x.Evaluations > 150 {
			stop()
		}
	}
	policy, err := NewPolicy(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	o, err := policy.Place(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations <= 150 || o.Evaluations >= 200 {
		t.Errorf("%d evaluations, want it to stop after 150", o.Evaluations)
	}
}

// TestLittleTime: a policy whose clock runs out while it prepares, or in a turn,
// has what it sampled: one round at least, if there is time for it at all.
func TestLittleTime(t *testing.T) {
	for _, step := range []float64{0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.3} { // of the budget, at each look at the clock
		p := problem(t, "trfxl2", 2)
		p.Tasks, p.Budget = plan.Place|plan.Schedule|plan.Fuse, plan.Budget{Seconds: 1}
		now := 0.0
		p.Clock = func() float64 { now += step; return now }
		policy, err := NewPolicy(DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		o, err := policy.Place(context.Background(), p)
		if err != nil {
			t.Fatalf("%g: %v", step, err)
		}
		if o.Evaluations == 0 || len(o.Device) != p.Graph.NumOps() {
			t.Errorf("%g: %d evaluations, %d ops placed", step, o.Evaluations, len(o.Device))
		}
	}
}
