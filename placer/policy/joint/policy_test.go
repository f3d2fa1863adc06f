package joint

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/placer/policy/cem"
	"placer/placer/policy/fusion"
	"placer/placer/problem/problemtest"
	"placer/plan"
)

func newPolicy() *Policy { return New(cem.Default(), fusion.Default()) }

// takes is the score of o with what p gives.
func takes(p *plan.Problem, d plan.Decision) plan.Score {
	return p.Evaluator.Clone().Evaluate(p.Complete(d))
}

// TestTurns: every plan that is told takes what is told of it, none is worse than
// the one before, the outcome is the last, and turns after exploring find better
// ones, on the placement and near it.
func TestTurns(t *testing.T) {
	late, moved := 0, 0
	for _, tasks := range []plan.Tasks{plan.AllTasks, plan.Place | plan.Schedule, plan.Place | plan.Fuse, plan.Schedule | plan.Fuse, plan.Fuse} {
		for _, given := range []bool{false, true} {
			if given && tasks != plan.AllTasks {
				continue
			}
			p := problemtest.OnP100s(t, "trfxl2", 2, tasks)
			p.Budget = plan.Budget{Evaluations: 500}
			if given {
				p.Device = p.Units.Blocks(p.Evaluator.OpSeconds(0), 2)
			}
			var device []byte // of the plan told last
			var last plan.Progress
			p.Report = func(x plan.Progress) {
				if x.Evaluations < last.Evaluations || last.Evaluations > 0 && last.Best.Better(x.Best) {
					t.Errorf("%v: %v after %d evaluations, then %v after %d", tasks, last.Best, last.Evaluations, x.Best, x.Evaluations)
				}
				if x.Device != nil {
					if s := takes(p, x.Decision); s != x.Best {
						t.Errorf("%v: told %v after %d evaluations, the plan takes %v", tasks, x.Best, x.Evaluations, s)
					}
					if x.Evaluations > 230 && tasks.Has(plan.Place) {
						late++
						if !bytes.Equal(device, x.Device) {
							moved++
						}
					}
					device = bytes.Clone(x.Device)
				}
				last = x
			}
			o, err := newPolicy().Place(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if s := takes(p, o.Decision); s != o.Score || s != last.Best {
				t.Errorf("%v: outcome %v, told %v, its plan takes %v", tasks, o.Score, last.Best, s)
			}
			if (o.Priority != nil) != tasks.Has(plan.Schedule) || (o.Fusion != nil) != tasks.Has(plan.Fuse) {
				t.Errorf("%v: outcome with priorities %v and fusion %v", tasks, o.Priority != nil, o.Fusion != nil)
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

// TestStops: a policy that is stopped in a turn ends with what it has.
func TestStops(t *testing.T) {
	p := problemtest.OnP100s(t, "wavenet2", 2, plan.AllTasks)
	p.Budget = plan.Budget{Evaluations: 200}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p.Report = func(x plan.Progress) {
		if x.Evaluations > 150 {
			stop()
		}
	}
	o, err := newPolicy().Place(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Evaluations <= 150 || o.Evaluations >= 200 {
		t.Errorf("%d evaluations, want it to stop after 150", o.Evaluations)
	}
	if _, err := newPolicy().Place(ctx, p); err == nil {
		t.Error("nothing was sampled and that is no error")
	}
}

// TestLittleTime: a policy whose clock runs out while it prepares, or in a turn,
// has what it sampled: one round at least, if there is time for it at all.
func TestLittleTime(t *testing.T) {
	for _, step := range []float64{0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.3} { // of the budget, at each look at the clock
		p := problemtest.OnP100s(t, "wavenet2", 2, plan.AllTasks)
		p.Budget = plan.Budget{Seconds: 1}
		now := 0.0
		p.Clock = func() float64 { now += step; return now }
		o, err := newPolicy().Place(context.Background(), p)
		if err != nil {
			t.Fatalf("%g: %v", step, err)
		}
		if o.Evaluations == 0 || len(o.Device) != p.Graph.NumOps() {
			t.Errorf("%g: %d evaluations, %d ops placed", step, o.Evaluations, len(o.Device))
		}
	}
}

// ticking is an evaluator whose evaluations are the problem's clock.
type ticking struct {
	plan.Evaluator
	fusions [][]uint8 // of every evaluation
}

// tick is the time that an evaluation takes, in seconds.
const tick = 0.01

func (e *ticking) Evaluate(d plan.Decision) plan.Score {
	e.fusions = append(e.fusions, slices.Clone(d.Fusion))
	return e.Evaluator.Evaluate(d)
}

func (e *ticking) clock() float64 { return tick * float64(len(e.fusions)) }

// timed is a problem with a budget of evaluations told in seconds.
func timed(t *testing.T, tasks plan.Tasks, evaluations int) (*plan.Problem, *ticking) {
	p := problemtest.OnP100s(t, "trfxl2", 2, tasks)
	e := &ticking{Evaluator: p.Evaluator}
	p.Evaluator, p.Clock, p.Budget = e, e.clock, plan.Budget{Seconds: tick * float64(evaluations)}
	return p, e
}

// cut runs a policy until a number of evaluations, as a process does that is killed:
// the outcome is the last progress, the file what was saved with it.
func cut(t *testing.T, p *plan.Problem, evaluations int) (o *plan.Outcome, path string) {
	policy := newPolicy()
	path = filepath.Join(t.TempDir(), "policy.safetensors")
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	o = &plan.Outcome{}
	p.Report = func(x plan.Progress) {
		o.Evaluations, o.Score = x.Evaluations, x.Best
		if x.Device != nil {
			o.Decision = plan.Decision{Device: slices.Clone(x.Device), Priority: slices.Clone(x.Priority), Fusion: slices.Clone(x.Fusion)}
		}
		if err := policy.Save(path); err != nil {
			t.Error(err)
		}
		if x.Evaluations >= evaluations {
			kill()
		}
	}
	if _, err := policy.Place(ctx, p); err != nil {
		t.Fatal(err)
	}
	return o, path
}

// TestResumed: a policy that is cut off and resumed uses what was left of the budget
// and ends no worse than it was. Behind exploring it goes on at the plan that it had.
func TestResumed(t *testing.T) {
	const whole = 600
	for _, tasks := range []plan.Tasks{plan.AllTasks, plan.Schedule | plan.Fuse, plan.Fuse} {
		for _, share := range []float64{0.2, 0.7} {
			p, _ := timed(t, tasks, whole)
			earlier, path := cut(t, p, int(share*whole))
			left, e := timed(t, tasks, whole-earlier.Evaluations)
			policy := newPolicy()
			policy.Resume(earlier, path)
			o, err := policy.Place(context.Background(), left)
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Notes) > 0 || earlier.Score.Better(o.Score) {
				t.Errorf("%v at %g: %v, before it was cut off %v; notes %q", tasks, share, o.Score, earlier.Score, o.Notes)
			}
			if n := o.Evaluations; n < whole-earlier.Evaluations-64 || n > whole-earlier.Evaluations+64 {
				t.Errorf("%v at %g: %d evaluations, %d were left", tasks, share, n, whole-earlier.Evaluations)
			}
			if share < policy.Config.Explore {
				continue
			}
			if first := e.fusions[0]; tasks != plan.Fuse && !slices.Equal(first, earlier.Fusion) {
				t.Errorf("%v at %g: it does not go on at its plan", tasks, share)
			}
		}
	}
}

// TestResumedWithoutCheckpoint: what cannot be taken up is said, and the earlier
// best counts all the same.
func TestResumedWithoutCheckpoint(t *testing.T) {
	p, _ := timed(t, plan.Fuse, 100)
	earlier, path := cut(t, p, 50)
	earlier.Score.Value /= 2 // better than what can be found
	other := filepath.Join(t.TempDir(), "other.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte(strings.NewReplacer(formatValue, "placer.other.v1", `"sha256"`, `"sha255"`).Replace(string(data))), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, path, note string }{{"nothing saved", "", ""}, {"gone", path + "x", "no such file"}, {"another's", other, "placer.other.v1"}} {
		policy := newPolicy()
		policy.Resume(earlier, test.path)
		left, _ := timed(t, plan.Fuse, 100)
		o, err := policy.Place(context.Background(), left)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if notes := strings.Join(o.Notes, "; "); (test.note == "") != (notes == "") || !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %q, want %q", test.name, notes, test.note)
		}
		if o.Score != earlier.Score || !slices.Equal(o.Fusion, earlier.Fusion) {
			t.Errorf("%s: the earlier best is forgotten", test.name)
		}
	}
}
