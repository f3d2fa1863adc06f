package sequential

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/nn"
	"placer/plan"
	"placer/schedule"
)

// TestTaskDecoder: levels without learning give the longest path's order and everything
// fused; a level earlier or later moves a unit's ops and keeps a permutation; level 0
// fuses nothing.
func TestTaskDecoder(t *testing.T) {
	s := instanceOf(t, small)
	x, n := newTaskDecoder(s, plan.AllTasks), len(s.part.Of)
	device := make([]uint8, n)
	l := defaultLogits(s.part.NumUnits()).likeliest()
	d := x.decide(device, l)
	if !slices.Equal(d.Priority, s.problem.Priority) {
		t.Error("the default levels change the order of the longest path")
	}
	if slices.Contains(d.Fusion, 0) {
		t.Error("the default levels leave an op out of fusion")
	}
	u := s.part.Of[slices.Index(s.problem.Priority, int32(n/2))]
	for _, level := range []int32{0, scheduleLevels - 1} {
		l.schedule[u] = level
		p := x.decide(device, l).Priority
		if sorted := slices.Sorted(slices.Values(p)); sorted[0] != 0 || sorted[n-1] != int32(n-1) || len(slices.Compact(sorted)) != n {
			t.Fatalf("level %d gives no permutation", level)
		}
		sum := 0
		for _, i := range s.part.Ops[u] {
			sum += int(p[i] - s.problem.Priority[i])
		}
		if level == 0 && sum >= 0 || level > 0 && sum <= 0 {
			t.Errorf("level %d moves its unit by %d places in all", level, sum)
		}
	}
	for u := range l.fusion {
		l.fusion[u] = 0
	}
	if f := x.decide(device, l).Fusion; slices.Contains(f, 1) {
		t.Error("level 0 fuses something")
	}
}

// TestPolicyGradient compares the gradient of levels with finite differences.
func TestPolicyGradient(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	logits := nn.NewMat(4, 3)
	for i := range logits.V {
		logits.V[i] = float32(random.NormFloat64())
	}
	draws, advantage := make([][]int32, 5), make([]float32, 5)
	for k := range draws {
		for range logits.N {
			draws[k] = append(draws[k], int32(random.IntN(3)))
		}
		advantage[k] = float32(random.NormFloat64())
	}
	const weight = 0.3
	value := func() (v float64) {
		p := make([]float64, 3)
		for u := range logits.N {
			nn.SoftmaxRow(p, logits.Row(u))
			for _, q := range p {
				v += weight * q * math.Log(q) / 4
			}
			for k := range draws {
				v -= float64(advantage[k]) * math.Log(p[draws[k][u]]) / 4 / 5
			}
		}
		return v
	}
	grad, _ := policyGradient(logits, draws, advantage, weight)
	for i := range logits.V {
		const h = 1e-2
		was := logits.V[i]
		logits.V[i] = was + h
		up := value()
		logits.V[i] = was - h
		down := value()
		logits.V[i] = was
		if want := (up - down) / (2 * h); math.Abs(want-float64(grad.V[i])) > 1e-3 {
			t.Errorf("logit %d: gradient %g, want %g", i, grad.V[i], want)
		}
	}
}

// TestReinforceTasks: a step changes what decides schedule and fusion and nothing else.
func TestReinforceTasks(t *testing.T) {
	p := encoded(t)
	tr := newTrainer(p, rand.New(rand.NewPCG(5, 5)))
	s := instanceOf(t, small)
	c := DefaultPretrain()
	before := map[string][]float32{}
	for _, w := range p.net.params.All() {
		before[w.Name] = slices.Clone(w.Value)
	}
	if _, err := tr.reinforceTasks(context.Background(), lesson{s, 1}, &c, 1e-2); err != nil {
		t.Fatal(err)
	}
	heads := p.net.params.Named("scheduling.", "fusion.")
	for _, w := range p.net.params.All() {
		same := slices.Equal(w.Value, before[w.Name])
		if head := heads.Lookup(w.Name) != nil; head == same && w.Name != "scheduling.norm.gain" {
			t.Errorf("%s: part of the tasks %v, unchanged %v", w.Name, head, same)
		}
	}
}

// TestJointDirect: with all tasks decided the plan is shorter than that of placement alone.
func TestJointDirect(t *testing.T) {
	p := encoded(t)
	var best [2]float64
	for i, tasks := range []plan.Tasks{plan.Place, plan.AllTasks} {
		f, _ := views(t, small)
		f.problem.Tasks = tasks
		samples, err := p.Direct(context.Background(), f, 4)
		if err != nil {
			t.Fatal(err)
		}
		best[i] = Best(samples).Score.Value
	}
	if best[1] >= best[0] {
		t.Errorf("jointly %g s, placement alone %g s", best[1], best[0])
	}
}

// TestReorders: with the schedule the last of the samples is the best of the others in the
// order of its own longest path, justified.
func TestReorders(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	p.Tasks = plan.AllTasks
	f, err := NewFeatures(p)
	if err != nil {
		t.Fatal(err)
	}
	x := policy(t, 16)
	for name, sample := range map[string]func(context.Context, *Features, int) ([]Sample, error){"direct": x.Direct, "drafts": x.ZeroShot} {
		samples, err := sample(context.Background(), f, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(samples) != 5 {
			t.Fatalf("%s: %d samples, want 5", name, len(samples))
		}
		last, best := samples[4], Best(samples[:4])
		if !slices.Equal(last.Device, best.Device) || !slices.Equal(last.Fusion, best.Fusion) {
			t.Errorf("%s: the last sample has another placement or fusion than the best of the others", name)
		}
		best.Priority = schedule.PlacedCriticalPath(p, best.Device)
		if want := schedule.Justified(p, best.Decision); !slices.Equal(last.Priority, want) {
			t.Errorf("%s: the last sample is not in the justified order of its own longest path", name)
		}
		if got := p.Evaluator.Evaluate(last.Decision); got != last.Score {
			t.Errorf("%s: the last sample scores %v, was judged %v", name, got, last.Score)
		}
	}
}
