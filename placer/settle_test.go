package placer

import (
	"bytes"
	"context"
	"testing"

	"placer/plan"
)

// TestSettle: in the last share of the budget the placement stays what it was,
// what is told never gets worse, and the outcome is what was told last and what
// its plan takes.
func TestSettle(t *testing.T) {
	late := 0 // better plans on the placement
	for _, tasks := range []plan.Tasks{plan.Place | plan.Schedule | plan.Fuse, plan.Place | plan.Schedule, plan.Place | plan.Fuse} {
		p := problem(t, "trfxl2", 2)
		p.Tasks, p.Budget = tasks, plan.Budget{Evaluations: 400}
		c := DefaultPolicy()
		c.Joint.Settle = 0.5
		var device []byte // before
		var last plan.Progress
		p.Report = func(x plan.Progress) {
			if x.Evaluations < last.Evaluations || last.Evaluations > 0 && last.Best.Better(x.Best) {
				t.Errorf("%v: %v after %d evaluations, then %v after %d", tasks, last.Best, last.Evaluations, x.Best, x.Evaluations)
			}
			switch {
			case x.Device == nil:
			case x.Evaluations <= 200+c.Joint.Samples:
				device = bytes.Clone(x.Device)
			case !bytes.Equal(x.Device, device):
				t.Errorf("%v: another placement after %d evaluations", tasks, x.Evaluations)
			default:
				late++
				if tasks.Has(plan.Schedule) != (x.Priority != nil) || tasks.Has(plan.Fuse) != (x.Fusion != nil) {
					t.Errorf("%v: told %d priorities, %d fusions", tasks, len(x.Priority), len(x.Fusion))
				}
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
		priority := o.Priority
		if priority == nil {
			priority = p.Priority
		}
		if s := p.Evaluator.EvaluateFused(o.Device, priority, o.Fusion); s != o.Score || s != last.Best {
			t.Errorf("%v: outcome %v, told %v, its plan takes %v", tasks, o.Score, last.Best, s)
		}
		if o.Evaluations != last.Evaluations || o.Evaluations > 400 || o.Evaluations < 300 {
			t.Errorf("%v: %d evaluations, told %d, of 400", tasks, o.Evaluations, last.Evaluations)
		}
	}
	if late == 0 {
		t.Error("nothing better on the placements")
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
