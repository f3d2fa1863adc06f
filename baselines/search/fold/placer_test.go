package fold_test

import (
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/baselines/rules"
	"placer/baselines/search/fold"
	"placer/placer/problem"
	"placer/plan"
)

const decoder = "llama:layers=12,hidden=512,heads=8,kv_heads=8,ffn=1408,vocab=1000,seq=512,batch=6,micro_batches=6"

func micro(t *testing.T, evaluations int) *plan.Problem {
	t.Helper()
	whole, err := problem.Workload(decoder, "a100", 4, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &whole.Problem
	p.Budget.Evaluations = evaluations
	return p
}

// Stages of more than one block a device overlap where a pipeline of whole stages waits.
func TestBetterThanStages(t *testing.T) {
	p := micro(t, 60)
	expert, err := rules.Expert().Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	o, err := fold.Placer{}.Place(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&plan.Plan{Decision: o.Decision}).Check(p.Graph, p.Machine); err != nil {
		t.Error(err)
	}
	if s := p.Evaluate(o.Device); s != o.Score {
		t.Errorf("scores %v, the problem says %v", o.Score, s)
	}
	if o.Score.Value > 0.9*expert.Score.Value {
		t.Errorf("%.4g s, stages of whole layers take %.4g s: %q", o.Score.Value, expert.Score.Value, o.Notes)
	}
	if o.Evaluations > 60 {
		t.Errorf("%d evaluations", o.Evaluations)
	}
	again, err := fold.Placer{}.Place(t.Context(), micro(t, 60))
	if err != nil || !slices.Equal(again.Device, o.Device) {
		t.Errorf("another placement the second time, %v", err)
	}
}

// What does not fold is refused with a reason.
func TestRefuses(t *testing.T) {
	p, err := conformance.Cases()[3].Problem()
	if err != nil {
		t.Fatal(err)
	}
	if o, err := (fold.Placer{}).Place(t.Context(), p); err == nil && o.Device == nil {
		t.Error("no placement and no reason")
	}
	q := micro(t, 10)
	q.Objective = plan.Memory
	if _, err := (fold.Placer{}).Place(t.Context(), q); err == nil {
		t.Error("the memory objective does not fold")
	}
}
