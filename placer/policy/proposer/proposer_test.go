package proposer

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/baselines/search/anneal"
	"placer/plan"
)

// made returns moves of which those bring something whose first feature is above the
// second one, the more the larger the third is.
func made(n int, seed uint64) *Sample {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &Sample{Tasks: plan.Place, Families: []string{"rnnlm"}}
	for range n {
		x := make([]float32, anneal.NumMoveFeatures)
		for k := range x {
			x[k] = float32(r.NormFloat64())
		}
		gain := 0.0
		if x[0] > x[1] {
			gain = referenceGain * math.Exp(float64(x[2]))
		}
		s.add(anneal.Judged{Features: x, Gain: gain})
	}
	return s
}

func small() Config {
	c := Default(plan.Place)
	c.Problems, c.Hidden, c.Epochs = 3, 16, 20
	return c
}

func collectMade(_ context.Context, index int) (*Sample, error) {
	s := made(2000, uint64(index))
	if index == 2 {
		s.Families = []string{"gnmt"}
	}
	return s, nil
}

// What is trained ranks what brings something first, and of that what brings more.
func TestLearns(t *testing.T) {
	c := small()
	n, err := Train(t.Context(), c, Host{Collect: collectMade})
	if err != nil {
		t.Fatal(err)
	}
	test := made(1000, 99)
	score := make([]float32, len(test.Gain))
	n.Greed = 0
	n.Rank(test.X, score)
	right, pairs := 0, 0
	for i := range score {
		for k := range score {
			if test.Gain[i] > 0 && test.Gain[k] == 0 {
				pairs++
				if score[i] > score[k] {
					right++
				}
			}
		}
	}
	if share := float64(right) / float64(pairs); share < 0.97 {
		t.Errorf("%.3f of pairs are ranked right by likelihood", share)
	}
	n.Greed = 1
	n.Rank(test.X, score)
	right, pairs = 0, 0
	for i := range score {
		for k := range score {
			if test.X[i*anneal.NumMoveFeatures] > test.X[i*anneal.NumMoveFeatures+1]+1 && test.X[k*anneal.NumMoveFeatures] > test.X[k*anneal.NumMoveFeatures+1]+1 && test.Gain[i] > 2*test.Gain[k] {
				pairs++
				if score[i] > score[k] {
					right++
				}
			}
		}
	}
	if share := float64(right) / float64(pairs); pairs < 100 || share < 0.8 {
		t.Errorf("%.3f of %d pairs are ranked right by gain", share, pairs)
	}
}

// The gradients of the loss are those of its differences.
func TestGradients(t *testing.T) {
	n := New(plan.Place, 5, rand.New(rand.NewPCG(1, 1)))
	for _, p := range n.params.All() {
		r := rand.New(rand.NewPCG(2, uint64(len(p.Value))))
		for k := range p.Value {
			p.Value[k] += float32(0.3 * r.NormFloat64())
		}
	}
	s := made(7, 3)
	tr, err := newTraining(n, &s.Moves)
	if err != nil {
		t.Fatal(err)
	}
	loss := func() float64 {
		tr.forward(tr.order)
		return tr.loss(tr.order) / float64(len(tr.order))
	}
	loss()
	tr.backward()
	for _, p := range n.params.All() {
		for k := 0; k < len(p.Value); k += 1 + len(p.Value)/20 {
			const h = 1e-3
			old := p.Value[k]
			p.Value[k] = old + h
			up := loss()
			p.Value[k] = old - h
			down := loss()
			p.Value[k] = old
			want := (up - down) / (2 * h)
			if math.Abs(want-float64(p.Grad[k])) > 1e-3+0.02*math.Abs(want) {
				t.Errorf("weight %d of %d: gradient %g, by differences %g", k, len(p.Value), p.Grad[k], want)
			}
		}
	}
}

// What is written is read again to the bit, and ranks the same; what was trained on other
// features is refused by name.
func TestFile(t *testing.T) {
	c := small()
	c.HeldOut = []string{"gnmt"}
	n, err := Train(t.Context(), c, Host{Collect: collectMade})
	if err != nil {
		t.Fatal(err)
	}
	if n.Card.Graphs != 2 || n.Card.Moves != 4000 || !slices.Equal(n.Card.Trained, []string{"rnnlm"}) {
		t.Errorf("the card says %+v", n.Card)
	}
	var b bytes.Buffer
	if err := n.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := Read(b.Bytes(), "x")
	if err != nil {
		t.Fatal(err)
	}
	test := made(100, 5)
	one, two := make([]float32, 100), make([]float32, 100)
	n.Rank(test.X, one)
	m.Rank(test.X, two)
	if !slices.Equal(one, two) {
		t.Error("a network that was read ranks otherwise")
	}
	other := strings.NewReplacer("saved_critical", "wasted_xritica", `"sha256"`, `"sha255"`).Replace(b.String()) // without a checksum
	if _, err := Read([]byte(other), "x"); err == nil || !strings.Contains(err.Error(), "train it anew") {
		t.Errorf("other features: %v", err)
	}
	if _, err := Read([]byte("no"), "x"); err == nil {
		t.Error("two bytes are a network")
	}
}

// A sample's file holds what it held, for what it was collected from alone.
func TestSampleFile(t *testing.T) {
	s := made(50, 1)
	var b bytes.Buffer
	if err := s.Write(&b, "this"); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSample(b.Bytes(), plan.Place, "this", "x")
	if err != nil || !slices.Equal(got.X, s.X) || !slices.Equal(got.Gain, s.Gain) || !slices.Equal(got.Families, s.Families) {
		t.Errorf("read %v", err)
	}
	if got, err := ReadSample(b.Bytes(), plan.Place, "that", "x"); got != nil || err != nil {
		t.Errorf("of something else: %v, %v", got, err)
	}
	if _, err := ReadSample(b.Bytes()[:40], plan.Place, "this", "x"); err == nil {
		t.Error("half a file is a sample")
	}
	s.Gain[7] = float32(math.Inf(1))
	b.Reset()
	if err := s.Write(&b, "this"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSample(b.Bytes(), plan.Place, "this", "x"); err == nil || !strings.Contains(err.Error(), "gain: element 7") {
		t.Errorf("an infinite gain: %v", err)
	}
	integers := strings.NewReplacer(`"F32"`, `"I32"`, `"sha256"`, `"sha255"`).Replace(b.String())
	if _, err := ReadSample([]byte(integers), plan.Place, "this", "x"); err == nil || !strings.Contains(err.Error(), "I32") {
		t.Errorf("features that are integers: %v", err)
	}
}

// The moves of a problem depend on the seed alone, and a search that was stopped gives
// none.
func TestCollect(t *testing.T) {
	for _, c := range []struct {
		tasks       plan.Tasks
		evaluations int
	}{{plan.Place, 120}, {plan.AllTasks, 200}} {
		one, err := Collect(t.Context(), c.tasks, 7, 10, c.evaluations)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Collect(t.Context(), c.tasks, 7, 10, c.evaluations)
		if err != nil {
			t.Fatal(err)
		}
		if len(one.Gain) < 10 || len(one.X) != len(one.Gain)*len(featuresOf(c.tasks)) || !slices.Equal(one.X, two.X) || !slices.Equal(one.Gain, two.Gain) {
			t.Errorf("%v: %d and %d moves of the same problem, %d figures", c.tasks, len(one.Gain), len(two.Gain), len(one.X))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := Collect(ctx, c.tasks, 7, 10, c.evaluations); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: stopped: %v", c.tasks, err)
		}
	}
}

// A network of moves of all tasks keeps to its own features, in its file too.
func TestAllTasks(t *testing.T) {
	n := New(plan.AllTasks, 3, rand.New(rand.NewPCG(1, 1)))
	var b bytes.Buffer
	if err := n.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := Read(b.Bytes(), "x")
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, anneal.NumJointFeatures)
	x[anneal.NumJointFeatures-1] = 1
	one, two := make([]float32, 1), make([]float32, 1)
	n.Rank(x, one)
	if m.Rank(x, two); m.Tasks() != plan.AllTasks || one[0] != two[0] {
		t.Errorf("it ranks moves of %v, %g in place of %g", m.Tasks(), two[0], one[0])
	}
}

func TestValidate(t *testing.T) {
	c := Config{HeldOut: []string{"nothing"}}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") < 3 {
		t.Errorf("%v", err)
	}
	for _, tasks := range []plan.Tasks{plan.Place, plan.AllTasks} {
		if err := Default(tasks).Validate(); err != nil {
			t.Error(err)
		}
	}
	c = Default(plan.Place | plan.Fuse)
	if err := c.Validate(); err == nil {
		t.Error("moves of placement and fusion have no features")
	}
}
