package gnn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/regaltest"
	"placer/baselines/regal/sched"
	"placer/nn/safetensors"
)

func training() Training {
	t := Short()
	t.Batch, t.Samples, t.Evaluations = 2, 2, 150
	return t
}

func graph(k int) (*sched.Problem, error) { return regaltest.Small(uint64(k)), nil }

func bytesOf(t *testing.T, f *safetensors.File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A training in one go and one that is resumed in the middle, with other numbers
// of workers, end in the same bytes; rewards are near -1; Load reads what came
// out.
func TestTrainResumes(t *testing.T) {
	c := training()
	c.Imitate, c.Keep = 1, 2
	steps := func(tr *Trainer, n int) {
		for range n {
			s, err := tr.Step(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if s.Imitating != (s.Step == 1) || !s.Imitating && (s.Reward > -0.7 || s.Reward < -1.5) {
				t.Errorf("%+v", s)
			}
		}
	}
	whole := NewTrainer(policy(t, bias()), c, 3, graph, 5)
	steps(whole, 3)
	c.Workers = 3
	first := NewTrainer(policy(t, bias()), c, 3, graph, 5)
	steps(first, 2)
	data := bytesOf(t, first.Checkpoint())
	f, err := safetensors.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	second := NewTrainer(policy(t, bias()), c, 3, graph, 5)
	if err := second.Restore(f); err != nil || second.Steps() != 2 {
		t.Fatalf("%d steps, %v", second.Steps(), err)
	}
	steps(second, 1)
	if !bytes.Equal(bytesOf(t, whole.Checkpoint()), bytesOf(t, second.Checkpoint())) {
		t.Error("the resumed training ends elsewhere")
	}
	if bytes.Equal(data, bytesOf(t, second.Checkpoint())) {
		t.Error("a step changes nothing")
	}
	got, err := Load("x", second.Weights(), regaltest.Backend(t))
	if err != nil || got.Steps != 3 || got.Imitated != 1 || !reflect.DeepEqual(got.Policy.Config(), bias()) {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := second.Step(ctx); !errors.Is(err, context.Canceled) || second.Steps() != 3 {
		t.Errorf("%d steps after the end, %v", second.Steps(), err)
	}
}

// Imitation brings the likeliest actions towards the rule's.
func TestImitation(t *testing.T) {
	c := training()
	c.Imitate = 60
	tr := NewTrainer(policy(t, synthetic()), c, 4, graph, 6)
	first, last := 0.0, 0.0
	for k := range c.Imitate {
		s, err := tr.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			first = s.Loss
		}
		last = s.Loss
	}
	if last > 0.6*first {
		t.Errorf("loss from %g to %g", first, last)
	}
}

// On one graph, with searches so short that proposals decide them, REINFORCE
// raises the reward.
func TestReinforceImproves(t *testing.T) {
	c := training()
	c.Batch, c.Samples, c.Evaluations, c.LearningRate, c.Entropy = 1, 8, 30, 2e-2, 0
	tr := NewTrainer(policy(t, synthetic()), c, 1, graph, 7)
	early, late := 0.0, 0.0
	const steps, window = 60, 15
	for k := range steps {
		s, err := tr.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if k < window {
			early += s.Reward / window
		}
		if k >= steps-window {
			late += s.Reward / window
		}
	}
	if late < early+0.02 {
		t.Errorf("mean reward from %.4f to %.4f", early, late)
	}
}

// The rule's decisions: the larger affinity on the device an op prefers, priority
// falling along a chain, every op with all its decisions.
func TestTeach(t *testing.T) {
	p := regaltest.Small(2)
	g := readGraph(context.Background(), p, sched.RunTime, rand.New(rand.NewPCG(1, 2)))
	a := synthetic().Actions
	d := teach(p, g, a)
	if len(d) != p.N()*6 {
		t.Fatalf("%d decisions for %d ops", len(d), p.N())
	}
	second := 0
	for i := range p.N() {
		if d[i*6]+d[i*6+2] != 1 || d[i*6+1] != 0 || d[i*6+3] != 0 {
			t.Errorf("op %d: %v", i, d[i*6:i*6+6])
		}
		second += int(d[i*6+2])
		for x, end := p.Outputs(int32(i)); x < end; x++ {
			for _, v := range p.Consumers(x) {
				if d[int(v)*6+4] > d[i*6+4] {
					t.Errorf("op %d comes before op %d, which it waits for", v, i)
				}
			}
		}
	}
	if second < p.N()/4 || second > 3*p.N()/4 {
		t.Errorf("%d of %d ops prefer the second device", second, p.N())
	}
	x, err := Rule{Actions: a}.Propose(context.Background(), p, sched.RunTime, rand.New(rand.NewPCG(1, 2)))
	if err != nil || !reflect.DeepEqual(x.Distributions, a.Distributions(d)) || x.Evaluations != 400 || x.Pin != propose.Heaviest(p, sched.RunTime) {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestLoadRefuses: a file whose configuration asks for more weights than it has, or that does
// not count its steps, is refused.
func TestLoadRefuses(t *testing.T) {
	wide := synthetic()
	wide.Width = 1 << 18
	config, err := json.Marshal(wide)
	if err != nil {
		t.Fatal(err)
	}
	for key, c := range map[string]struct{ value, want string }{
		configKey:   {string(config), "more weights"},
		stepKey:     {"many", "step of the weights"},
		imitatedKey: {"1e3", "imitated of the weights"},
	} {
		f := policy(t, synthetic()).file(nil)
		f.Metadata[key] = c.value
		if _, err := Load("x", f, regaltest.Backend(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want one with %q", key, c.value, err, c.want)
		}
	}
}
