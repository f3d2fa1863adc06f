package transfer

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/anneal"
	"placer/baselines/human"
	"placer/graph/unit"
	"placer/plan"
)

// views returns c as it is placed and as pretraining has it.
func views(t testing.TB, c Case) (placed, learned *View) {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	if placed, err = NewView(p); err != nil {
		t.Fatal(err)
	}
	if learned, err = newView(p); err != nil {
		t.Fatal(err)
	}
	return placed, learned
}

func scene(t testing.TB, c Case) *Scene {
	t.Helper()
	w, _ := views(t, c)
	return w.scenes[0]
}

var small = Case{Workload: "trfxl:layers=1,batch=8,sequence=64,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", GPU: "p100", Devices: 3}

func policy(t testing.TB, hidden int) *Policy {
	t.Helper()
	p, err := NewPolicy(Config{Hidden: hidden}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	// Scores near 0 would make every gradient but the last layer's vanish.
	for i := range p.net.last.Value {
		p.net.last.Value[i] *= 30
	}
	return p
}

// TestGradients compares every weight's gradient of both objectives with finite
// differences.
func TestGradients(t *testing.T) {
	s := scene(t, small)
	p := policy(t, 6)
	tr := NewTrainer(p, rand.New(rand.NewPCG(5, 5)))
	f := tr.pass
	f.units(s.static)
	tr.eps.roll(s, f, draw(tr.random, 3), 1, true, sampler([]float32{1, 1, 1}, tr.random, s.d))
	advantage := []float32{1, -0.5, 0.3}
	weight := make([]float32, s.part.NumUnits())
	for u := range weight {
		weight[u] = 1 + float32(u%3)
	}
	objectives := map[string]struct {
		value    func() float64
		gradient func()
	}{
		"imitation": {func() float64 { l, _ := f.imitate(tr.eps, weight); return l }, func() { f.imitate(tr.eps, weight) }},
		"ppo": {func() float64 {
			v, h, kl := f.value(tr.eps, advantage)
			return v - 0.01*h + 0.1*kl
		}, func() { f.reinforce(tr.eps, advantage, objective{0.2, 0.01, 0.1}) }},
	}
	for name, o := range objectives {
		t.Run(name, func(t *testing.T) {
			p.net.params.ZeroGrad()
			o.gradient()
			var grads [][]float32 // of all weights: the values below may add to them
			for _, w := range p.net.params.All() {
				grads = append(grads, slices.Clone(w.Grad))
			}
			for k, w := range p.net.params.All() {
				got := grads[k]
				for i := 0; i < len(w.Value); i += 1 + len(w.Value)/12 {
					const h = 1e-2
					was := w.Value[i]
					w.Value[i] = was + h
					up := o.value()
					w.Value[i] = was - h
					down := o.value()
					w.Value[i] = was
					want := (up - down) / (2 * h)
					if math.Abs(want-float64(got[i])) > 2e-3+0.05*math.Abs(want) {
						t.Errorf("%s[%d]: gradient %g, want %g", w.Name, i, got[i], want)
					}
				}
			}
		})
	}
}

// value is PPO's objective near the policy that sampled: the mean of -A ratio, the
// mean entropy, and the mean divergence from the advice.
func (f *pass) value(e *episodes, advantage []float32) (objective, entropy, divergence float64) {
	s := e.scene
	f.units(s.static)
	scores := slices.Clone(f.forward(e.of, e.y, s.d))
	p := make([]float32, s.d)
	n := float64(len(e.of))
	for r := range e.of {
		row, ok := scores[r*s.d:(r+1)*s.d], e.ok[r*s.d:(r+1)*s.d]
		lp := logSoftmaxAt(row, ok, e.chosen[r])
		objective -= float64(advantage[r%e.k]) * math.Exp(float64(lp-e.logp[r])) / n
		softmax(row, ok, p)
		advice := make([]float32, s.d)
		for d := range advice {
			advice[d] = trust * e.y[(r*s.d+d)*numDynamic+advised]
		}
		for d, q := range p {
			if q > 0 {
				entropy -= float64(q) * math.Log(float64(q)) / n
				divergence += float64(q) * (math.Log(float64(q)) - float64(logSoftmaxAt(advice, ok, int32(d)))) / n
			}
		}
	}
	return objective, entropy, divergence
}

// TestDeviceNamesDoNotMatter: scores of a device do not depend on the order in
// which devices are listed.
func TestDeviceNamesDoNotMatter(t *testing.T) {
	s := scene(t, small)
	p := policy(t, 16)
	f := &pass{n: p.net}
	f.units(s.static)
	r := rand.New(rand.NewPCG(1, 9))
	y := make([]float32, 3*numDynamic)
	for i := range y {
		y[i] = float32(r.NormFloat64())
	}
	a := slices.Clone(f.forward([]int32{2}, y, 3))
	turned := append(slices.Clone(y[numDynamic:]), y[:numDynamic]...)
	b := f.forward([]int32{2}, turned, 3)
	for d := range a {
		if math.Abs(float64(a[(d+1)%3]-b[d])) > 1e-5 {
			t.Errorf("device %d scores %g, want %g", d, b[d], a[(d+1)%3])
		}
	}
}

// TestStateKeepsSums: after a whole sample the sums that columns are made of are
// those of the placement.
func TestStateKeepsSums(t *testing.T) {
	s := scene(t, small)
	p := policy(t, 8)
	f := &pass{n: p.net}
	f.units(s.static)
	e := &episodes{}
	e.roll(s, f, draw(rand.New(rand.NewPCG(1, 2)), 2), 2, false, sampler([]float32{1, 1}, rand.New(rand.NewPCG(2, 2)), s.d))
	for _, x := range e.states[:2] {
		load := make([]float64, s.d)
		for u, d := range x.device {
			if d == none {
				t.Fatalf("unit %d is not decided", u)
			}
			load[d] += s.work[d][u]
		}
		for d := range load {
			if math.Abs(load[d]-x.load[d]) > 1e-9 {
				t.Errorf("load of device %d is %g, want %g", d, x.load[d], load[d])
			}
			if math.Abs(x.pending[d]) > 1e-9 {
				t.Errorf("the draft keeps %g on device %d after all units were decided", x.pending[d], d)
			}
		}
		if x.clock < s.total/float64(s.d)-1e-9 || x.clock > s.total+1 {
			t.Errorf("the schedule ends at %g s, work is %g s", x.clock, s.total)
		}
	}
}

// TestImitationLearns: a policy that imitates one plan comes to decide as the plan
// does.
func TestImitationLearns(t *testing.T) {
	s := scene(t, small)
	o, err := anneal.Placer{Workers: 1}.Place(context.Background(), budgeted(s.problem, 200))
	if err != nil {
		t.Fatal(err)
	}
	teacher := s.Labels(o.Device)
	tr := NewTrainer(policy(t, 32), rand.New(rand.NewPCG(5, 5)))
	first, _, _ := tr.Imitate(s, teacher)
	last := 0.0
	for range 150 {
		if err := tr.Step(3e-3); err != nil {
			t.Fatal(err)
		}
		last, _, _ = tr.Imitate(s, teacher)
	}
	if last > first/4 {
		t.Errorf("cross entropy went from %.3f to %.3f", first, last)
	}
}

func budgeted(p *plan.Problem, n int) *plan.Problem {
	q := *p
	q.Budget.Evaluations = n
	return &q
}

func quick() PretrainConfig {
	c := DefaultPretrain()
	c.Families, c.Imitation, c.Batch, c.Steps, c.Samples, c.Pool, c.Renew, c.MostRows = []string{"wavenet", "towers"}, 2, 1, 4, 4, 2, 1, 500
	c.Policy.Hidden = 8
	return c
}

func quickHost(save func(*Checkpoint) error) Host {
	return Host{Expert: human.Placer{}, Teacher: anneal.Placer{Workers: 1}, TeacherBudget: plan.Budget{Evaluations: 30}, Every: 1, Save: save}
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

func written(t *testing.T, p *Policy) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPolicyFile(t *testing.T) {
	p := policy(t, 8)
	p.Card = Card{Trained: []string{"a"}, HeldOut: []string{"b"}, Steps: 3, Results: []Result{{Workload: "w", Devices: 2, Best: 0.5}}}
	p.Reach = reachOf([]noticed{{"a", 0, scene(t, small).summary()}, {"b", 0, make([]float32, 2*numStatic)}})
	q, err := Read(written(t, p), "f")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, q), written(t, p)) {
		t.Error("a policy changes on its way through a file")
	}
	if _, err := Read([]byte("{}"), "f"); err == nil {
		t.Error("a file that is no policy was read")
	}
}

// TestTuning: fine-tuning is never worse than zero-shot, keeps to its budget,
// leaves the policy as it was, and gives one plan for one seed and any number of
// workers.
func TestTuning(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	pol := policy(t, 16)
	before := written(t, pol)
	zero, err := Placer{Policy: pol}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	c := quickTune()
	one, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if zero.Score.Better(one.Score) {
		t.Errorf("fine-tuned %v is worse than zero-shot %v", one.Score, zero.Score)
	}
	if got := p.Evaluate(one.Device); got != one.Score {
		t.Errorf("the plan scores %v, not %v", got, one.Score)
	}
	// The first step and the last five have 48 samples, six have 36, for three devices.
	if want := DefaultSamples + 6*48 + 6*36; one.Evaluations != want {
		t.Errorf("%d evaluations, want %d", one.Evaluations, want)
	}
	c.Workers = 3
	two, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one.Device, two.Device) {
		t.Error("one seed gives two plans")
	}
	if !bytes.Equal(before, written(t, pol)) {
		t.Error("fine-tuning changed the policy it started from")
	}
	short, err := Tuner{Policy: pol, Config: c}.Place(context.Background(), budgeted(p, 80))
	if err != nil || short.Evaluations != 80 {
		t.Errorf("%d evaluations of 80, error %v", short.Evaluations, err)
	}
}

func quickTune() TuneConfig {
	c := DefaultTune()
	c.Steps, c.Samples = 12, 48
	return c
}

// TestReach: a training graph lies at no distance, another family's within the
// limit or not as leave-one-family-out says, and a strange one beyond.
func TestReach(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var seen []noticed
	for f := range 3 {
		for i := range 20 {
			x := make([]float32, 2*numStatic)
			for k := range x {
				x[k] = 10 + float32(f)/4 + float32(r.NormFloat64())/4
			}
			seen = append(seen, noticed{string(rune('a' + f)), i, x})
		}
	}
	reach := reachOf(seen)
	if err := reach.validate(); err != nil {
		t.Fatal(err)
	}
	w, learned := views(t, small)
	far := reach.Distance(w)
	if far <= reach.Limit {
		t.Errorf("a graph unlike all lies at %g, within %g", far, reach.Limit)
	}
	near := reachOf(append(seen, noticed{"d", 0, learned.scenes[0].summary()}))
	if d := near.Distance(w); d > 1e-6 {
		t.Errorf("a training graph lies at distance %g", d)
	}
	var nothing Reach
	if !math.IsInf(nothing.Distance(w), 1) {
		t.Error("with nothing known, a graph is near")
	}
}

// TestHoldOut: the families held out and their kin are not drawn from.
func TestHoldOut(t *testing.T) {
	for _, f := range Families() {
		left, err := Training([]string{f.Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range left {
			if g.Name == f.Name || slices.Contains(f.Kin, g.Name) || slices.Contains(g.Kin, f.Name) {
				t.Errorf("%s is trained on where %s is held out", g.Name, f.Name)
			}
		}
	}
	if _, err := Training([]string{"nothing"}); err == nil {
		t.Error("an unknown family can be held out")
	}
}

// TestFamiliesBuild: members of every family build, and a search can better the
// expert's placement of generated ones.
func TestFamiliesBuild(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, f := range Families() {
		t.Run(f.Name, func(t *testing.T) {
			c := f.Draw(r)
			if _, err := c.graph(); err != nil {
				t.Fatalf("%v: %v", c, err)
			}
		})
	}
	for _, style := range []string{seriesParallel, towers, crossed, skips} {
		s := scene(t, Case{Workload: style + ":12,64,256,1,3", GPU: "p100", Devices: 2, Bandwidth: 2})
		p := s.problem
		if s.turns < 20 || p.Units.Partners[unit.Cell] == nil {
			t.Errorf("%s: %d decisions, partners %v", style, s.turns, p.Units.Partners[unit.Cell] != nil)
		}
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

// What is placed is decided with partial gradients apart, what is learned from by
// plain cells.
func TestViewsHavePartialGradients(t *testing.T) {
	fine, plain := views(t, Case{Workload: "trfxl:layers=1,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", GPU: "p100", Devices: 2})
	p := plain.problem
	cells := p.Units.Levels[unit.Cell].NumUnits()
	if a, b := fine.scenes[0].turns, plain.scenes[0].turns; a <= cells || b != cells {
		t.Errorf("%d and %d decisions, want more than the %d cells and as many", a, b, cells)
	}
	if !slices.Equal(fine.summary, plain.scenes[0].summary()) {
		t.Error("a graph with partial gradients is not summarised as in training")
	}
	samples, err := policy(t, 6).ZeroShot(t.Context(), fine, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if got := p.Evaluator.Evaluate(s.Device, p.Priority); got != s.Score {
			t.Errorf("a sample of score %v is judged %v", s.Score, got)
		}
	}
}
