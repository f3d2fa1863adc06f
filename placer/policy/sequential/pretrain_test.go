package sequential

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/plan"
)

func quick() PretrainConfig {
	c := DefaultPretrain()
	c.Families, c.Imitation, c.Batch, c.Steps, c.Samples, c.Pool, c.Renew, c.MostRows = []string{"wavenet", "towers"}, 2, 1, 4, 4, 2, 1, 500
	c.Policy, c.Judged = Config{Hidden: 8}, 1
	return c
}

func quickHost(save func(*Checkpoint) error) Host {
	return Host{Expert: rules.Expert(), Teacher: anneal.Placer{Workers: 1}, TeacherBudget: plan.Budget{Evaluations: 30}, Every: 1, Save: save}
}

// TestResumedPretrainingEndsTheSame: a run taken up from the file of any
// checkpoint ends with the policy file, byte for byte, of the run that nobody
// disturbed.
func TestResumedPretrainingEndsTheSame(t *testing.T) {
	var files [][]byte
	whole, err := Pretrain(context.Background(), quick(), nil, quickHost(func(k *Checkpoint) error {
		var b bytes.Buffer
		err := k.Write(&b)
		files = append(files, b.Bytes())
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := written(t, whole)
	for _, at := range []int{0, 3} {
		k, err := ReadCheckpoint(files[at], "k")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Pretrain(context.Background(), quick(), k, quickHost(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written(t, p), want) {
			t.Errorf("resumed from step %d, the policy differs", k.Step)
		}
	}
	if p, err := Read(files[3], "k"); err != nil || p.Card.Steps != 4 {
		t.Errorf("a checkpoint as a policy: %v", err)
	}
	other := quick()
	other.Rate *= 2
	k, err := ReadCheckpoint(files[2], "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pretrain(context.Background(), other, k, quickHost(nil)); err == nil {
		t.Error("a checkpoint of another configuration was taken up")
	}
	taught := quickHost(nil)
	taught.TeacherBudget.Evaluations++
	if _, err := Pretrain(context.Background(), quick(), k, taught); err == nil || !strings.Contains(err.Error(), "imitates a search of 30 evaluations, not of 31") {
		t.Errorf("a checkpoint of another teacher: %v", err)
	}
}

func TestInterruptedPretrainingSaves(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	saved := 0
	h := quickHost(func(k *Checkpoint) error { saved = k.Step; return nil })
	h.Every = 0
	h.Report = func(p Progress) error {
		if p.Step == 1 {
			cancel()
		}
		return nil
	}
	if _, err := Pretrain(ctx, quick(), nil, h); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if saved != 2 {
		t.Errorf("saved after %d steps, want 2", saved)
	}
}

// TestPretrainingHearsItsContext: a run of which every graph is in use already, so that none
// is built, ends with its context all the same.
func TestPretrainingHearsItsContext(t *testing.T) {
	c := quick()
	c.Families, c.Pool, c.Imitation = []string{"wavenet"}, 1, 30
	ctx, cancel := context.WithCancel(context.Background())
	last := 0
	h := quickHost(nil)
	h.Report = func(p Progress) error {
		if last = p.Step; p.Step == 1 {
			cancel()
		}
		return nil
	}
	if _, err := Pretrain(ctx, c, nil, h); !errors.Is(err, context.Canceled) || last != 1 {
		t.Errorf("error %v after step %d, want it to be stopped after step 1", err, last)
	}
}

// TestTooFewRows: where every graph of a family is larger than is asked for there is an error,
// and no end of drawing.
func TestTooFewRows(t *testing.T) {
	c := quick()
	c.MostRows = 1
	run, err := newPretraining(c, nil)
	must(t, err)
	run.draws = 3
	if _, err := run.newExample(t.Context(), run.families[0], 0); err == nil || !strings.Contains(err.Error(), "more than 1 decisions") {
		t.Errorf("error %v", err)
	}
}

func TestConfigs(t *testing.T) {
	if err := DefaultPretrain().Validate(); err != nil {
		t.Error(err)
	}
	if err := DefaultTune().Validate(); err != nil {
		t.Error(err)
	}
	bad := DefaultPretrain()
	bad.Samples, bad.HeldOut, bad.Rate, bad.Policy.Hidden = 1, []string{"nothing"}, 0, 0
	if err := bad.Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 4 {
		t.Errorf("faults: %v", err)
	}
}
