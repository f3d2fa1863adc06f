package hdp

import (
	"math"
	"math/rand/v2"
	"testing"

	"placer/nn"
	"placer/ppo"
)

func places(n int) nn.Mat {
	x := nn.NewMat(n, 3)
	for u := range n {
		x.Row(u)[0] = (float32(u) + 0.5) / float32(n)
		x.Row(u)[1] = float32(u%2) - 0.5
	}
	return x
}

func testGrouper(t *testing.T, sharpness float64, n, groups int) (*grouper, *nn.Params) {
	t.Helper()
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Hidden, c.Sharpness = 16, sharpness
	ps := nn.NewParams()
	g, err := newGrouper(c, ps, rand.New(rand.NewPCG(1, 2)), backend, places(n), groups)
	if err != nil {
		t.Fatal(err)
	}
	return g, ps
}

func draws(k, n int) ([][]int32, [][]float32) {
	var groups [][]int32
	var logProb [][]float32
	for range k {
		groups, logProb = append(groups, make([]int32, n)), append(logProb, make([]float32, n))
	}
	return groups, logProb
}

// TestOrderedStart: ops start in groups around their place, and every group has
// some.
func TestOrderedStart(t *testing.T) {
	const n, groups = 300, 10
	g, _ := testGrouper(t, 16, n, groups)
	got, logProb := draws(1, n)
	if err := g.sample(rand.New(rand.NewPCG(3, 4)), got, logProb); err != nil {
		t.Fatal(err)
	}
	count := make([]int, groups)
	for u, v := range got[0] {
		count[v]++
		if want := u * groups / n; math.Abs(float64(int(v)-want)) > 2 {
			t.Errorf("op %d of %d starts in group %d of %d", u, n, v, groups)
		}
	}
	for v, c := range count {
		if c == 0 {
			t.Errorf("group %d is empty", v)
		}
	}
}

// TestSampleMatchesItsProbabilities: the log probabilities are those of the
// logits, and frequencies follow them.
func TestSampleMatchesItsProbabilities(t *testing.T) {
	const n, groups, k = 4, 5, 20000
	g, _ := testGrouper(t, 0, n, groups)
	got, logProb := draws(k, n)
	if err := g.sample(rand.New(rand.NewPCG(3, 4)), got, logProb); err != nil {
		t.Fatal(err)
	}
	logits, p := g.graph.Output(0), make([]float64, groups)
	for u := range n {
		lz := nn.SoftmaxRow(p, logits.Row(u))
		count := make([]float64, groups)
		for i := range k {
			v := got[i][u]
			count[v]++
			if d := math.Abs(float64(logProb[i][u]) - (float64(logits.Row(u)[v]) - lz)); d > 1e-5 {
				t.Fatalf("log probability of group %d of op %d is off by %g", v, u, d)
			}
		}
		for v := range groups {
			// Five deviations of a binomial frequency.
			if f := count[v] / k; math.Abs(f-p[v]) > 5*math.Sqrt(p[v]/k) {
				t.Errorf("op %d is in group %d in %.4f of samples, want %.4f", u, v, f, p[v])
			}
		}
	}
}

// TestGrouperLearns: REINFORCE makes it separate odd ops from even ones.
func TestGrouperLearns(t *testing.T) {
	const n, k = 10, 8
	g, ps := testGrouper(t, 0, n, 2)
	r := rand.New(rand.NewPCG(3, 4))
	o := &ppo.Objective{ClipEps: 1}
	o.Actions, o.LogProb = draws(k, n)
	right := func(a []int32) (x float32) {
		for u, v := range a {
			if int(v) == u%2 {
				x += 1. / n
			}
		}
		return x
	}
	adam, reward, advantage := nn.NewAdam(nn.DefaultAdam()), make([]float32, k), make([]float32, k)
	for range 60 {
		if err := g.sample(r, o.Actions, o.LogProb); err != nil {
			t.Fatal(err)
		}
		o.Advantage = o.Advantage[:0]
		for i, a := range o.Actions {
			reward[i] = right(a)
		}
		ppo.Standardise(advantage, reward)
		for i := range advantage {
			o.Advantage = append(o.Advantage, advantage[i:i+1])
		}
		if _, err := g.graph.Run(o); err != nil {
			t.Fatal(err)
		}
		if _, err := adam.Step(ps, 0.02); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.sample(r, o.Actions, o.LogProb); err != nil {
		t.Fatal(err)
	}
	if x := right(o.Actions[0]); x < 0.9 {
		t.Errorf("%.0f%% of the ops are in their group, want 90%%", 100*x)
	}
}
