package fusion

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"placer/placer/policy/rollout"
	"placer/placer/problem/problemtest"
	"placer/plan"
)

// newLearner returns a learner of the classes of the first stage.
func newLearner(t *testing.T, p *plan.Problem) (*learner, *classes) {
	t.Helper()
	run, err := rollout.New(p, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	l := &learner{Config: Default(), ctx: context.Background(), run: run, samples: 3}
	l.kernels, l.fusion = []plan.KernelCosts{p.Kernels()}, [][]uint8{make([]uint8, p.Graph.NumOps())}
	l.weight = []float64{1, 1}
	x := newClasses(p.Graph, p.Evaluator.OpSeconds(0), mostClasses)
	return l, x
}

// decided is the plan of levels of classes.
func decided(p *plan.Problem, x *classes, level []int32) *plan.Decision {
	d := p.Decision
	d.Fusion = make([]uint8, p.Graph.NumOps())
	x.decode(level, d.Fusion)
	return &d
}

// TestPolicyIsDeterministic: fusion is learnt alike on one goroutine and on three,
// through all stages, takes what is said of it and less than fusing all; a refinement
// begins there.
func TestPolicyIsDeterministic(t *testing.T) {
	var first *plan.Outcome
	for _, workers := range []int{1, 3} {
		p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
		p.Budget.Evaluations = 240
		c := Default()
		c.Workers = workers
		o, err := Policy{c}.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = o
		} else if !bytes.Equal(first.Fusion, o.Fusion) {
			t.Errorf("%d workers give another plan", workers)
		}
		d := p.Decision
		d.Fusion = o.Fusion
		if s := p.Evaluator.Evaluate(d); s != o.Score || o.Evaluations > 240 {
			t.Errorf("score %v after %d evaluations, evaluated %v", o.Score, o.Evaluations, s)
		}
		d.Fusion = slices.Repeat([]uint8{1}, len(o.Fusion))
		if all := p.Evaluator.Evaluate(d); !o.Score.Better(all) {
			t.Errorf("%v, fusing all %v", o.Score, all)
		}
		p.Fusion = o.Fusion
		finer, err := Refiner{c}.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if !finer.Score.Better(o.Score) {
			t.Errorf("refined from %v to %v", o.Score, finer.Score)
		}
	}
}

// TestRefuses: without kernel costs, or with other tasks, there is an error.
func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(*plan.Problem){
		"no kernels": func(p *plan.Problem) { p.Kernels = nil },
		"tasks":      func(p *plan.Problem) { p.Tasks = plan.AllTasks },
		"placement":  func(p *plan.Problem) { p.Device = nil },
	} {
		p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.Fuse)
		p.Budget.Evaluations = 16
		change(p)
		if _, err := (Policy{Default()}).Place(context.Background(), p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestFiner: a class of the next stage has the level of the plan that the stage
// begins at, and with a small probability what the class that it was part of would do.
func TestFiner(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
	x := newClasses(p.Graph, p.Evaluator.OpSeconds(0), mostClasses)
	y := x.split(times(p.Units))
	if len(y.ops) <= len(x.ops) || len(y.single().ops) <= len(y.ops) {
		t.Fatal("classes that do not become more")
	}
	fusion := make([]uint8, p.Graph.NumOps())
	for i := range fusion {
		fusion[i] = uint8(i % levels)
	}
	q := newDistribution(len(x.ops))
	leave := min(mostLeave, strays/float64(len(y.ops)))
	for c, got := range q.finer(x, y, fusion) {
		for a, probability := range got {
			want := leave * q[x.of[y.ops[c][0]]][a]
			if a == int(fusion[y.ops[c][0]]) {
				want += 1 - leave
			}
			if d := probability - want; d > 1e-12 || d < -1e-12 {
				t.Fatalf("class %d has level %d with probability %g, want %g", c, a, probability, want)
			}
		}
	}
}

func TestRankWeights(t *testing.T) {
	sum, last := 0.0, 2.0
	for _, w := range rankWeights(16) {
		if w >= last || w <= 0 {
			t.Errorf("weight %g after %g", w, last)
		}
		sum, last = sum+w, w
	}
	if d := sum - 1; d > 1e-12 || d < -1e-12 {
		t.Errorf("weights sum to %g", sum)
	}
}
