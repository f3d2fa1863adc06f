package goone

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/ppo"
)

// tick is the time that an evaluation takes on the clock of ticking, in seconds.
const tick = 0.01

// ticking is an evaluator whose evaluations are the problem's clock.
type ticking struct {
	plan.Evaluator
	decided [][]uint8 // of every evaluation: devices, then fusion
}

func (e *ticking) Evaluate(d plan.Decision) plan.Score {
	e.decided = append(e.decided, slices.Concat(d.Device, d.Fusion))
	return e.Evaluator.Evaluate(d)
}

func (e *ticking) clock() float64 { return tick * float64(len(e.decided)) }

// timed is a problem with a budget of evaluations told in seconds.
func timed(t *testing.T, workload string, tasks plan.Tasks, evaluations int) (*plan.Problem, *ticking) {
	p := problemtest.OnP100s(t, workload, 2, plan.Place)
	e := &ticking{Evaluator: p.Evaluator}
	p.Evaluator, p.Clock, p.Tasks, p.Budget = e, e.clock, tasks, plan.Budget{Seconds: tick * float64(evaluations)}
	return p, e
}

// cut trains until a number of evaluations, as a process does that is killed: the
// outcome is the last progress, the file what was saved with it, after rounds.
func cut(t *testing.T, p *plan.Problem, evaluations int) (o *plan.Outcome, path string, rounds int) {
	policy, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "policy.safetensors")
	ctx, kill := context.WithCancel(context.Background())
	o = &plan.Outcome{}
	p.Report = func(x plan.Progress) {
		o.Evaluations, o.Score = x.Evaluations, x.Best
		if x.Device != nil {
			o.Device, o.Priority, o.Fusion = slices.Clone(x.Device), slices.Clone(x.Priority), slices.Clone(x.Fusion)
		}
		if err := policy.Save(path); err != nil {
			t.Error(err)
		}
		rounds = policy.trained
		if x.Evaluations >= evaluations {
			kill()
		}
	}
	if _, err := policy.Place(ctx, p); err != nil {
		t.Fatal(err)
	}
	return o, path, rounds
}

// agreement is the chance that a sample of a and one of b decide alike on an op.
func agreement(a, b [][]uint8) float64 {
	same := 0
	for _, x := range a {
		for _, y := range b {
			for i, v := range x {
				if v == y[i] {
					same++
				}
			}
		}
	}
	return float64(same) / float64(len(a)*len(b)*len(a[0]))
}

// TestResumedPolicyGoesOn: a policy that is cut off and resumed samples at once
// what it sampled before, not what an untrained one does, in every part of its
// training, uses what was left of the budget, and ends no worse than it was.
func TestResumedPolicyGoesOn(t *testing.T) {
	const whole = 1600
	for _, test := range []struct {
		name  string
		tasks plan.Tasks
		at    []float64 // shares of the budget
	}{
		{"place", plan.Place, []float64{0.35, 0.5, 0.9}}, // the second curriculum, the third, the best one
		{"schedule", plan.Schedule, []float64{0.5}},
	} {
		for _, share := range test.at {
			p, e := timed(t, "trfxl2", test.tasks, whole)
			if test.tasks == plan.Schedule {
				p.Device = make([]uint8, p.Graph.NumOps())
			}
			earlier, path, rounds := cut(t, p, int(share*whole))
			untrained, trained := e.decided[:32], e.decided[len(e.decided)-32:]
			left, e := timed(t, "trfxl2", test.tasks, whole-earlier.Evaluations)
			left.Device = p.Device
			policy, err := New(Default())
			if err != nil {
				t.Fatal(err)
			}
			policy.Resume(earlier, path)
			o, err := policy.Place(context.Background(), left)
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Notes) > 0 {
				t.Errorf("%s at %g: notes %q", test.name, share, o.Notes)
			}
			if earlier.Score.Better(o.Score) {
				t.Errorf("%s at %g: %v, before it was cut off %v", test.name, share, o.Score, earlier.Score)
			}
			like, unlike, most := agreement(e.decided[:32], trained), agreement(untrained, trained), agreement(trained, trained)
			if like < (unlike+most)/2 {
				t.Errorf("%s at %g: first samples agree by %.3f with the last before, untrained ones by %.3f, these among each other by %.3f", test.name, share, like, unlike, most)
			}
			if policy.trained <= rounds {
				t.Errorf("%s at %g: %d rounds of the curricula before, %d in the end", test.name, share, rounds, policy.trained)
			}
			if n := o.Evaluations; n < whole-earlier.Evaluations-64 || n > whole-earlier.Evaluations+64 {
				t.Errorf("%s at %g: %d evaluations, %d were left", test.name, share, n, whole-earlier.Evaluations)
			}
		}
	}
}

// TestResumedWithoutCheckpoint: what cannot be taken up is said, and the earlier
// best counts all the same.
func TestResumedWithoutCheckpoint(t *testing.T) {
	p, _ := timed(t, "trfxl2", plan.Place, 400)
	earlier, path, _ := cut(t, p, 200)
	earlier.Score.Value /= 2 // better than what can be found
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "short.safetensors")
	if err := os.WriteFile(short, data[:len(data)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	other := Default()
	other.LearningRate /= 2
	for _, test := range []struct {
		name, path string
		config     Config
		note       string
	}{
		{"nothing saved", "", Default(), ""},
		{"gone", short + "x", Default(), "no such file"},
		{"cut short", short, Default(), "short.safetensors"},
		{"another configuration", path, other, "configuration"},
	} {
		policy, err := New(test.config)
		if err != nil {
			t.Fatal(err)
		}
		policy.Resume(earlier, test.path)
		left, _ := timed(t, "trfxl2", plan.Place, 200)
		o, err := policy.Place(context.Background(), left)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if notes := strings.Join(o.Notes, "; "); (test.note == "") != (notes == "") || !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %q, want %q", test.name, notes, test.note)
		}
		if o.Score != earlier.Score || !slices.Equal(o.Device, earlier.Device) {
			t.Errorf("%s: the earlier best is forgotten", test.name)
		}
	}
	// A checkpoint of units of another graph.
	policy, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	small, _ := timed(t, "rnnlm:layers=2,unroll=3", plan.Place, 200)
	policy.Resume(&plan.Outcome{Decision: plan.Decision{Device: make([]uint8, small.Graph.NumOps())}, Score: plan.Score{Value: 1e-9}}, path)
	o, err := policy.Place(context.Background(), small)
	if err != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "not for these units") {
		t.Errorf("a checkpoint of another graph: %v, %v", o, err)
	}
}

// TestResumedPolicyIsTheSame: a policy that is resumed says of the units that it was trained
// on, at once, what it said when it was saved, and from the same features.
func TestResumedPolicyIsTheSame(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.Place)
	p.Budget = plan.Budget{Evaluations: 64}
	c := Default()
	c.Samples, c.Segment = 8, 16
	stage := curriculum.Curricula(p.Graph, p.Units, c.Level, p.Evaluator.OpSeconds(0), 2)[0][1]
	start := func(policy *Policy, draws int) (*trainer, *gonet.Batch) {
		x, err := policy.begin(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for range draws { // as those of earlier stages
			x.random.Float64()
		}
		x.decoder.On(stage.Units, stage.OneFusion)
		b, err := x.batch(stage)
		if err == nil {
			err = x.start(b, stage, curriculum.Learnt{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return x, b
	}
	policy, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	x, batch := start(policy, 5)
	if _, err := ppo.NewTrainer(c.ppo(8, 1), x, x.network.On(batch), x.random).Round(func(int) float64 { return 0.01 }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "policy.safetensors")
	if err := policy.Save(path); err != nil {
		t.Fatal(err)
	}
	want, err := x.logits(batch)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	again.Resume(&plan.Outcome{Decision: x.run.Best.Decision, Score: x.run.Score}, path)
	y, resumed := start(again, 3)
	if len(y.notes) > 0 || !slices.Equal(resumed.X.V, batch.X.V) {
		t.Errorf("the features of a resumed policy differ from those before; notes %q", y.notes)
	}
	got, err := y.logits(resumed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !slices.EqualFunc(got[i], want[i], slices.Equal[[]float32]) {
			t.Errorf("logits of task %d differ", i)
		}
	}
	// A save before the next stage is of the same features.
	if err := again.Save(path); err != nil {
		t.Fatal(err)
	}
	third, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	third.Resume(&plan.Outcome{Decision: x.run.Best.Decision, Score: x.run.Score}, path)
	if _, b := start(third, 0); !slices.Equal(b.X.V, batch.X.V) {
		t.Error("the features of a policy that is resumed twice differ from those before")
	}
}
