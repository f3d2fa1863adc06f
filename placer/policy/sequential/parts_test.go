package sequential

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/transformerxl"
)

// TestWithout: each part can be left out alone, the configuration that it is left out of
// stays as it is, and the policy without it survives its file.
func TestWithout(t *testing.T) {
	c := Config{Hidden: 8, Encoder: DefaultEncoder(8)}
	all, err := NewPolicy(c, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range Parts() {
		less, err := c.Without([]string{part})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPolicy(less, rand.New(rand.NewPCG(3, 1)))
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		if part != "recurrence" && p.Weights() >= all.Weights() {
			t.Errorf("%d weights without %s, %d with it", p.Weights(), part, all.Weights())
		}
		q, err := Read(written(t, p), part)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		s := instanceOf(t, small)
		if a, b := p.net.encoder.embed(s), q.net.encoder.embed(s); !slices.Equal(a.V, b.V) {
			t.Errorf("without %s: a policy read embeds otherwise than the one written", part)
		}
	}
	if x := c.Encoder; x.GraphSAGE.Layers == 0 || !x.TransformerXL.Attention || x.TransformerXL.TasksApart {
		t.Error("a part was left out of the configuration itself")
	}
	for _, bad := range []struct {
		c    Config
		part string
	}{{c, "nonsense"}, {Config{Hidden: 16}, "attention"}} {
		if _, err := bad.c.Without([]string{bad.part}); err == nil || !strings.Contains(err.Error(), bad.part) {
			t.Errorf("%s: error %v does not name it", bad.part, err)
		}
	}
}

// TestUnguided: a policy without guides does not know which prior its rollout has.
func TestUnguided(t *testing.T) {
	s := instanceOf(t, small)
	p, err := NewPolicy(Config{Hidden: 16, Unguided: true}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.net.last.Value {
		p.net.last.Value[i] *= 30
	}
	e := newRollouts(p.net, s)
	all := heuristics()
	priors := []heuristic{all[0], all[1], all[2], all[len(all)-1]}
	e.roll(priors, rolling{choose: sampler(make([]float32, len(priors)), rand.New(rand.NewPCG(1, 1)), s.d), record: true})
	for _, x := range e.states[1:4] {
		if !slices.Equal(x.device, e.states[0].device) {
			t.Fatal("two priors led to two placements")
		}
	}
	last, open := len(e.of)-1, 0
	for _, ok := range e.okOf(last) {
		open += int(indicator(ok))
	}
	if open < 2 {
		t.Fatal("the last decision has no choice")
	}
	prior := make([]float32, s.d)
	e.priorProbabilities(last, prior)
	if want := 1 / float32(open); slices.Max(prior) > want+1e-6 {
		t.Errorf("the prior prefers a device: %v of %d", prior, open)
	}
}

// TestTaskRecurrence: what a unit's schedule is depends on the weights that say its
// placement, unless the tasks are apart.
func TestTaskRecurrence(t *testing.T) {
	for _, apart := range []bool{false, true} {
		c := Config{Hidden: 8, Encoder: DefaultEncoder(8)}
		if apart {
			c, _ = c.Without([]string{"task-recurrence"})
		}
		p, err := NewPolicy(c, rand.New(rand.NewPCG(3, 1)))
		if err != nil {
			t.Fatal(err)
		}
		s := instanceOf(t, small)
		before := p.net.encoder.tasks(s)
		for _, w := range p.net.params.Named(transformerxl.Placement + ".fc2").All() {
			for i := range w.Value {
				w.Value[i] += float32(i%7) - 3
			}
		}
		p.net.changed()
		after := p.net.encoder.tasks(s)
		if same := slices.Equal(before.schedule.V, after.schedule.V); same != apart {
			t.Errorf("tasks apart: %v, schedule the same: %v", apart, same)
		}
	}
}
