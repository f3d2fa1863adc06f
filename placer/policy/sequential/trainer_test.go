package sequential

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"placer/baselines/search/anneal"
)

// TestImitationLearns: a policy that imitates one plan comes to decide as the plan
// does.
func TestImitationLearns(t *testing.T) {
	s := instanceOf(t, small)
	o, err := anneal.Placer{Workers: 1}.Place(context.Background(), budgeted(s.problem, 200))
	if err != nil {
		t.Fatal(err)
	}
	teacher := s.labels(o.Device)
	tr := newTrainer(policy(t, 32), rand.New(rand.NewPCG(5, 5)))
	first := tr.imitate(s, teacher).Loss
	last := 0.0
	for range 150 {
		if err := tr.step(3e-3); err != nil {
			t.Fatal(err)
		}
		last = tr.imitate(s, teacher).Loss
	}
	if last > first/4 {
		t.Errorf("cross entropy went from %.3f to %.3f", first, last)
	}
}

// TestLearningHearsItsContext: a step that its context ends while it samples has learned
// nothing.
func TestLearningHearsItsContext(t *testing.T) {
	p := encoded(t)
	tr := newTrainer(p, rand.New(rand.NewPCG(5, 5)))
	before := written(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := DefaultPretrain()
	c.Alike = 4
	for name, step := range map[string]func(context.Context, lesson, *PretrainConfig, float64) (improvement, error){
		"PPO": tr.ppo, "self-labelling": tr.selfLabel, "tasks": tr.reinforceTasks,
	} {
		if _, err := step(ctx, lesson{instanceOf(t, small), 1}, &c, 1e-2); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context", name, err)
		}
		if !bytes.Equal(before, written(t, p)) {
			t.Errorf("%s: the weights have changed", name)
		}
	}
}

// TestAdvantages: rollouts are measured against those of the same prior.
func TestAdvantages(t *testing.T) {
	r := []float32{-1, -2, -1, -2, -5, -5, -5, -5}
	advantages(r, 4)
	if r[0] <= 0 || r[1] != -r[0] || r[2] != r[0] || r[4] != 0 || r[7] != 0 {
		t.Errorf("advantages %v", r)
	}
}
