package sequential

import (
	"bytes"
	"slices"
	"testing"

	"placer/placer/problem"
	"placer/plan"
)

// TestTuningOfAllTasks: the outcome decides on what is asked for and no other task, has the
// score that it says, and is no worse than any plan that was told of on the way, the zero-shot
// sample's among them.
func TestTuningOfAllTasks(t *testing.T) {
	for _, tasks := range []plan.Tasks{plan.Place, plan.Place | plan.Schedule, plan.Place | plan.Fuse, plan.AllTasks} {
		t.Run(tasks.String(), func(t *testing.T) {
			whole, err := problem.Workload("rnnlm:layers=2,unroll=3", "v100", 2, problem.Options{Tasks: tasks})
			must(t, err)
			p := &whole.Problem
			var told []plan.Progress
			p.Report = func(x plan.Progress) {
				x.Decision = x.Decision.Clone()
				told = append(told, x)
			}
			c := DefaultPPO()
			c.Steps, c.Samples = 4, 32
			for _, method := range []plan.Placer{Tuner{Policy: policy(t, 16), Config: c.TuneConfig}, PPOTuner{Policy: policy(t, 16), Config: c}} {
				told = nil
				o, err := method.Place(t.Context(), p)
				must(t, err)
				if got := p.Evaluator.Evaluate(p.Complete(o.Decision)); got != o.Score {
					t.Errorf("%s: the plan scores %v, not %v", method.Name(), got, o.Score)
				}
				if (o.Priority != nil) != tasks.Has(plan.Schedule) || (o.Fusion != nil) != tasks.Has(plan.Fuse) {
					t.Errorf("%s: %d priorities and %d fusions decided", method.Name(), len(o.Priority), len(o.Fusion))
				}
				for _, x := range told {
					if got := p.Evaluator.Evaluate(p.Complete(x.Decision)); got != x.Best || x.Best.Better(o.Score) {
						t.Errorf("%s: told of %v, whose plan scores %v, and came to %v", method.Name(), x.Best, got, o.Score)
					}
				}
			}
		})
	}
}

// TestHeldTasks: where there are evaluations for two more alone, two more samples are judged
// under what the best has, which stays.
func TestHeldTasks(t *testing.T) {
	whole, err := problem.Workload("rnnlm:layers=2,unroll=3", "v100", 2, problem.Options{Tasks: plan.AllTasks})
	must(t, err)
	p := &whole.Problem
	p.Budget.Evaluations = DefaultSamples + 2
	f, err := NewFeatures(p)
	must(t, err)
	zeroShot, err := policy(t, 16).zeroShot(t.Context(), f, DefaultSamples, varied())
	must(t, err)
	r, err := Tuner{Policy: policy(t, 16), Config: quickTune()}.begin(t.Context(), f, crossEntropy{})
	must(t, err)
	if want := len(zeroShot) + 2; r.begun != want || len(r.zeroShot) != min(3, len(zeroShot)) {
		t.Errorf("%d samples in %d evaluations, want 3 in %d", len(r.zeroShot), r.begun, want)
	}
	if got := r.state.score(); got != Best(zeroShot).Score {
		t.Errorf("the best is %v, zero-shot %v", got, Best(zeroShot).Score)
	}
}

// TestTuningOfAllTasksGoesOn: a run that goes on from a state ends as one that was not stopped,
// and no state of other tasks is gone on from.
func TestTuningOfAllTasksGoesOn(t *testing.T) {
	of := func(tasks plan.Tasks) *plan.Problem {
		whole, err := problem.Workload("rnnlm:layers=2,unroll=3", "v100", 2, problem.Options{Tasks: tasks})
		must(t, err)
		return &whole.Problem
	}
	var half *TuneState
	c := TuneConfig{Steps: 4, Samples: 32, Elite: 8, Rate: 1, Workers: 1}
	whole := Tuner{Policy: policy(t, 16), Config: c, Save: func(s *TuneState) error {
		if s.Step == 2 {
			var file bytes.Buffer
			must(t, s.Write(&file))
			var err error
			half, err = ReadTuneState(file.Bytes(), "state")
			return err
		}
		return nil
	}}
	want, err := whole.Place(t.Context(), of(plan.AllTasks))
	must(t, err)
	rest := Tuner{Policy: whole.Policy, Config: c, From: half}
	got, err := rest.Place(t.Context(), of(plan.AllTasks))
	must(t, err)
	if got.Score != want.Score || got.Evaluations != want.Evaluations || !slices.Equal(got.Device, want.Device) || !slices.Equal(got.Priority, want.Priority) || !slices.Equal(got.Fusion, want.Fusion) {
		t.Errorf("it goes on to %v after %d evaluations, in one go to %v after %d", got.Score, got.Evaluations, want.Score, want.Evaluations)
	}
	for _, tasks := range []plan.Tasks{plan.Place, plan.Place | plan.Fuse} {
		if _, err := rest.Place(t.Context(), of(tasks)); err == nil {
			t.Errorf("a state of all tasks is gone on from with %v", tasks)
		}
	}
}
