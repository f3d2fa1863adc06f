package sequential

import (
	"bytes"
	"context"
	"testing"

	"placer/baselines/rules"
	"placer/placer/corpus"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// problems returns a small corpus without GNMT, whose plans are the expert's.
func problems(t *testing.T) []corpus.Problem {
	t.Helper()
	teach := func(ctx context.Context, p *problem.Problem, _ plan.Budget, _ func() float64, _ uint64) (*search.Row, error) {
		o, err := rules.Expert().Place(ctx, &p.Problem)
		if err != nil {
			return nil, err
		}
		return &search.Row{Decision: o.Decision, Method: "human", Evaluations: 1}, nil
	}
	folder := t.TempDir()
	c := corpus.Config{Format: corpus.Format, Seed: 5, Evaluations: 1}
	if err := corpus.Make(t.Context(), folder, 4, c, corpus.Host{Teach: teach, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	all, err := corpus.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	some, err := all.Select(nil, []string{"gnmt"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return some
}

// TestPretrainingOnACorpus: a run on a corpus learns from its problems and plans alone,
// and ends the same when it is taken up from a checkpoint.
func TestPretrainingOnACorpus(t *testing.T) {
	c := quick()
	h := quickHost(nil)
	h.Teacher, h.Problems = nil, problems(t)
	c.Families, c.Imitation, c.Judged, c.HeldOut, c.Corpus = nil, 4, 0, []string{"gnmt"}, corpus.Fingerprint(h.Problems)
	var files [][]byte
	h.Save = func(k *Checkpoint) error {
		var b bytes.Buffer
		err := k.Write(&b)
		files = append(files, b.Bytes())
		return err
	}
	nets := map[string]bool{}
	for _, x := range h.Problems {
		nets[x.Net] = true
	}
	h.Report = func(p Progress) error {
		if !nets[p.Case.Workload] {
			t.Errorf("step %d is on %s", p.Step, p.Case.Workload)
		}
		return nil
	}
	whole, err := Pretrain(t.Context(), c, nil, h)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ReadCheckpoint(files[1], "k")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pretrain(t.Context(), c, k, h)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, whole), written(t, again)) {
		t.Error("resumed, the policy differs")
	}
	if whole.Card.Graphs == 0 || whole.Card.Graphs > len(h.Problems) {
		t.Errorf("%d graphs of %d", whole.Card.Graphs, len(h.Problems))
	}
	h.Problems = h.Problems[1:]
	if _, err := Pretrain(t.Context(), c, nil, h); err == nil {
		t.Error("other problems than those of the configuration were taken")
	}
}

// TestLabelIsTaught: what is imitated is where the corpus's plan has each cell, for most of its time.
func TestLabelIsTaught(t *testing.T) {
	some := problems(t)
	r := &pretraining{host: Host{Expert: rules.Expert()}}
	x, err := r.fromCorpus(t.Context(), &some[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.teach(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	p, d, err := some[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	same, all := 0.0, 0.0
	for i, seconds := range p.Evaluator.OpSeconds(0) {
		if all += seconds; x.teacher[i] == d.Device[i] {
			same += seconds
		}
	}
	if same < 0.9*all {
		t.Errorf("%.3g s of %.3g s are taught where the plan has them", same, all)
	}
}
