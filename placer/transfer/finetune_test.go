package transfer

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/plan"
)

// TestTuningLearns: what is sampled last takes less time than what was sampled
// first at the finest level, and the best less than zero-shot's.
func TestTuningLearns(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultTune()
	c.Steps, c.Samples = 24, 64
	pol := policy(t, 16)
	var mean []float64
	o, err := Tuner{Policy: pol, Config: c, Observe: func(s TuneStep, best plan.Score) error {
		if s.Level == "cell" {
			mean = append(mean, s.Mean)
		}
		if s.Best < best.Seconds {
			t.Errorf("step %d found %g s, the best is %g", s.Step, s.Best, best.Seconds)
		}
		return nil
	}}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(mean) < 18 || mean[len(mean)-1] > 0.9*mean[0] {
		t.Errorf("means of the rounds at the finest level: %v", mean)
	}
	zero, err := Placer{Policy: pol}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if o.Score.Seconds > 0.97*zero.Score.Seconds {
		t.Errorf("%g s after %g s without learning", o.Score.Seconds, zero.Score.Seconds)
	}
}

// TestResumedTuningEndsTheSame: a run taken up from the file of any step ends with
// the state, byte for byte, of the run that nobody disturbed.
func TestResumedTuningEndsTheSame(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	pol := policy(t, 16)
	var files [][]byte
	save := func(s *TuneState) error {
		var b bytes.Buffer
		err := s.Write(&b)
		files = append(files, b.Bytes())
		return err
	}
	whole, err := Tuner{Policy: pol, Config: quickTune(), Save: save}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	all := files
	for _, at := range []int{0, 2, 3, 11} {
		s, err := ReadTuneState(all[at], "s")
		if err != nil {
			t.Fatal(err)
		}
		files = nil
		o, err := Tuner{Policy: pol, Config: quickTune(), From: s, Save: save}.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.Device, whole.Device) || o.Evaluations != whole.Evaluations {
			t.Errorf("resumed behind step %d, the plan differs", at)
		}
		if len(files) > 0 && !bytes.Equal(files[len(files)-1], all[11]) {
			t.Errorf("resumed behind step %d, the last state differs", at)
		}
	}
	other := *p
	other.Seed++
	s, err := ReadTuneState(all[4], "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), &other); err == nil {
		t.Error("a state of another seed was taken up")
	}
	s.Link = s.Link[1:]
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), p); err == nil {
		t.Error("a state with a logit missing was taken up")
	}
	if _, err := ReadTuneState([]byte(`{"format":"x"}`), "s"); err == nil {
		t.Error("a state of another format was read")
	}
}

// TestFitGradient compares fit's step with finite differences of the elite's mean
// log likelihood.
func TestFitGradient(t *testing.T) {
	s := scene(t, small)
	w, err := NewView(s.problem)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Tuner{Policy: policy(t, 6), Config: quickTune()}.begin(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	r.enter(0)
	all, _ := r.sample(context.Background(), 3)
	l := r.level
	for _, x := range all {
		x.trace = l.replay(r.workers[0], x.Cells)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for _, v := range [][]float32{l.free, l.link} {
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
	}
	value := func() (sum float64) {
		logits := make([]float32, s.d)
		for _, x := range all {
			for k, u := range l.order {
				l.logits(u, x.trace.scores[k*s.d:(k+1)*s.d], x.trace.link[k*s.d*len(links):(k+1)*s.d*len(links)], logits)
				sum += float64(logSoftmaxAt(logits, x.trace.ok[k*s.d:(k+1)*s.d], x.trace.chosen[k])) / float64(len(all))
			}
		}
		return sum
	}
	for name, v := range map[string][]float32{"free": l.free, "link": l.link} {
		for i := 0; i < len(v); i += 1 + len(v)/40 {
			const h = 1e-2
			was := v[i]
			v[i] = was + h
			up := value()
			v[i] = was - h
			down := value()
			v[i] = was
			free, link := slices.Clone(l.free), slices.Clone(l.link)
			l.fit(all, 1, 1)
			got := float64(map[string][]float32{"free": l.free, "link": l.link}[name][i] - was)
			copy(l.free, free)
			copy(l.link, link)
			if want := (up - down) / (2 * h); math.Abs(want-got) > 2e-3+0.02*math.Abs(want) {
				t.Errorf("%s[%d]: step %g, want %g", name, i, got, want)
			}
		}
	}
}

// TestPace: rounds share out a budget in seconds as time passes and never take
// more than the configuration says.
func TestPace(t *testing.T) {
	now := 0.0
	x := pace{clock: func() float64 { return now }, budget: plan.Budget{Seconds: 100}, rounds: rounds{steps: 10, base: 512, early: 512, late: 512}}
	s := &TuneState{}
	now = 10 // of preparation
	if k := x.samples(s); k != probe {
		t.Fatalf("first round of %d samples, want %d", k, probe)
	}
	s.Step, s.Evaluations = 1, probe
	now += 0.1 * probe // a tenth of a second each
	if k, want := x.samples(s), int((100-now)/9/0.1+1e-6); k != want {
		t.Errorf("%d samples, want %d", k, want)
	}
	now = 10 + 0.001*probe
	if k := x.samples(s); k != 512 {
		t.Errorf("%d samples of quick evaluations, want 512", k)
	}
	now = 99.9
	if k := x.samples(s); k != fewest {
		t.Errorf("%d samples at the end, want %d", k, fewest)
	}
	now = 100
	if k := x.samples(s); k != 0 {
		t.Errorf("%d samples behind the end", k)
	}
}

// TestLevels: a run goes from the level that it began with to cells; its first
// step, of every level, comes on top.
func TestLevels(t *testing.T) {
	c := DefaultTune()
	for start, want := range [][]int{{49}, {40, 9}, {36, 8, 5}, timeStep: {31, 0, 0, 18}} {
		got, last := make([]int, start+1), start
		for k := range c.Steps {
			l := c.level(k, start)
			if l > last {
				t.Fatalf("from level %d, step %d goes back to %d", start, k, l)
			}
			if k > 0 && !within(l, 0) || within(start, l) != (l == start || l < start && (l == 0 || start != timeStep)) {
				t.Errorf("level %d within %d: %v", start, l, within(start, l))
			}
			last = l
			got[l]++
		}
		if !slices.Equal(got, want) {
			t.Errorf("from level %d: %v steps of each, want %v", start, got, want)
		}
	}
}

// TestFirstStepChoosesLevel: a run begins with cells where their samples hold the
// best, with chains elsewhere.
func TestFirstStepChoosesLevel(t *testing.T) {
	for _, of := range []Case{small, {Workload: "rnnlm:layers=2,unroll=3", GPU: "p100", Devices: 2}} {
		p, err := of.Problem()
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewView(p)
		if err != nil {
			t.Fatal(err)
		}
		tuner := Tuner{Policy: policy(t, 16), Config: quickTune()}
		var bests []float64
		for li := range levels {
			r, err := tuner.begin(context.Background(), w)
			if err != nil {
				t.Fatal(err)
			}
			r.enter(li)
			all, _ := r.sample(context.Background(), 16)
			best := math.Inf(1)
			for _, x := range all {
				best = min(best, x.Seconds)
			}
			bests = append(bests, best)
		}
		r, err := tuner.begin(context.Background(), w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.try(context.Background(), 48); err != nil {
			t.Fatal(err)
		}
		want := len(levels) - 1
		if bests[0] < min(bests[1], bests[2]) {
			want = 0
		}
		if r.state.Start != want || r.level.index != want {
			t.Errorf("%s: began with level %d, the bests are %v", of.Workload, r.state.Start, bests)
		}
		if r.state.Evaluations != DefaultSamples+48 || len(r.elite) == 0 || len(r.elite) > r.pace.rounds.learned(0) {
			t.Errorf("%s: %d evaluations, %d elite", of.Workload, r.state.Evaluations, len(r.elite))
		}
	}
}

// begun returns a quick tuning of c at its beginning.
func begun(t *testing.T, c Case) *tuning {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewView(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Tuner{Policy: policy(t, 16), Config: quickTune()}.begin(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFirstStepChoosesTimeSteps: where time steps hold the best zero-shot sample of
// an unrolled network they are tried, the run begins with them and goes on with
// cells, and learns from no placement that is none of theirs.
func TestFirstStepChoosesTimeSteps(t *testing.T) {
	r := begun(t, Case{Workload: "trfxl:layers=4,batch=16,sequence=128,segment=32,hidden=256,ffn=512,heads=4,head_dim=64,vocab=500", GPU: "p100", Devices: 4})
	if best := Best(r.opening); best.level != timeStep {
		t.Fatalf("the best zero-shot sample is of level %d", best.level)
	}
	if _, err := r.try(context.Background(), 64); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.tried, []int{0, 1, 2, timeStep}) || r.state.Start != timeStep || r.level.s.name != "time step" {
		t.Errorf("tried %v, began with level %d", r.tried, r.state.Start)
	}
	for _, x := range r.elite {
		of := slices.Repeat([]int{-1}, r.level.s.part.NumUnits())
		for c, d := range x.Cells {
			if u := r.level.cell[c]; of[u] >= 0 && of[u] != int(d) {
				t.Fatalf("unit %d is on devices %d and %d", u, of[u], d)
			} else {
				of[u] = int(d)
			}
		}
	}
}

// TestSoonestAreJudged: what is judged of a round are the drafts whose own
// schedules end soonest.
func TestSoonestAreJudged(t *testing.T) {
	r := begun(t, small)
	r.enter(0)
	const k = 10
	drafts := r.drafts(context.Background(), k*r.pace.rounds.made(0, 0))
	slowest := 0.0
	judged, _ := r.sample(context.Background(), k)
	clock := func(cells []byte) float64 {
		i := slices.IndexFunc(drafts, func(x draft) bool { return slices.Equal(x.cells, cells) })
		if i < 0 {
			t.Fatal("a placement was judged that is no draft")
		}
		return drafts[i].clock
	}
	for _, x := range judged {
		slowest = max(slowest, clock(x.Cells))
		if got := r.view.problem.Evaluate(r.devices(x.Cells)); got != x.score() {
			t.Errorf("%v was judged %v", got, x.score())
		}
	}
	sooner := 0
	for _, x := range drafts {
		if x.clock < slowest {
			sooner++
		}
	}
	if len(judged) != k || sooner >= k {
		t.Errorf("%d judged, %d drafts end before the last of them", len(judged), sooner)
	}
}

// TestSparingTuning: a sparing run refuses a time that zero-shot samples would take
// up, and no other.
func TestSparingTuning(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewView(p)
	if err != nil {
		t.Fatal(err)
	}
	q := *p
	q.Clock = func() float64 { return 0 }
	for _, c := range []struct {
		sparing bool
		seconds float64
		refused bool
	}{{true, 1.9 * w.takes(), true}, {true, 2.1 * w.takes(), false}, {true, 0, false}, {false, 0.1 * w.takes(), false}} {
		q.Budget.Seconds = c.seconds
		config := quickTune()
		config.Steps = 2
		o, err := Tuner{Policy: policy(t, 16), Config: config, Sparing: c.sparing}.Place(context.Background(), &q)
		if refused := err != nil; refused != c.refused {
			t.Errorf("sparing %v with %g s: outcome %v, error %v", c.sparing, c.seconds, o, err)
		}
	}
}

// Steps are larger where cells and devices make many logits, and on large graphs
// levels begin with more of them.
func TestManyLogitsLearnFaster(t *testing.T) {
	c := DefaultTune()
	for _, x := range []struct {
		ops, units, devices int
		times               int
	}{
		{10_000, manyLogits / 8, 8, 1},
		{10_000, manyLogits/8 + 1, 8, 2},
		{largeGraph + 1, manyLogits / 8, 8, 1},
		{largeGraph + 1, manyLogits, 8, 2},
	} {
		r := c.rounds(x.ops, x.units, x.devices)
		if r.fits != c.Fits*x.times || r.rate != c.Rate*float64(x.times) {
			t.Errorf("%d ops, %d units, %d devices: %d steps at rate %g, want %d times %d at %g", x.ops, x.units, x.devices, r.fits, r.rate, x.times, c.Fits, c.Rate)
		}
		if more := x.times > 1 && x.ops > largeGraph; more != (r.opening > openingFits) {
			t.Errorf("%d ops, %d units, %d devices: a level begins with %d steps", x.ops, x.units, x.devices, r.opening)
		}
	}
}

// Rounds grow where a graph has five minutes, and shrink again where an evaluation
// takes long.
func TestSamplesOfARound(t *testing.T) {
	for _, x := range []struct {
		ops, units, devices int
		base, early, late   int
	}{
		{2835, 243, 2, 256, 128, 256},
		{smallGraph, manyLogits, 8, 256, 512, 512},
		{smallGraph + 1, manyLogits / 8, 8, 256, 512, 512},
		{10_257, 969, 8, 1024, 2048, 2048}, // trfxl8
		{46_004, 1382, 4, 512, 512, 512},   // gnmt4
		{81_892, 2350, 8, 256, 512, 512},   // gnmt8
		{4 * hugeGraph, 2350, 8, 128, 256, 256},
	} {
		if r := DefaultTune().rounds(x.ops, x.units, x.devices); r.base != x.base || r.early != x.early || r.late != x.late {
			t.Errorf("%d ops, %d units, %d devices: base %d, %d early, %d late, want %d, %d, %d", x.ops, x.units, x.devices, r.base, r.early, r.late, x.base, x.early, x.late)
		}
	}
	c := DefaultTune()
	c.Samples = 64
	if r := c.rounds(81_892, 2350, 8); r.base != 64 {
		t.Errorf("base %d, want the 64 that are asked for", r.base)
	}
}
