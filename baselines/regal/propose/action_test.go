package propose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/nn"
)

func random(r *rand.Rand, n, d int) nn.Mat {
	m := nn.NewMat(n, d)
	for i := range m.V {
		m.V[i] = float32(r.NormFloat64())
	}
	return m
}

func TestSpace(t *testing.T) {
	s := propose.RunTime(2)
	if s.Columns() != 4*2+2*16 || s.Decisions() != 6 {
		t.Errorf("%d columns, %d decisions", s.Columns(), s.Decisions())
	}
	decisions := []uint8{1, 0, 0, 1, 15, 3, 0, 0, 1, 1, 2, 4}
	want := []brkga.Shape{
		brkga.Quantised(1, 0, 2), brkga.Quantised(0, 1, 2), brkga.Quantised(0, 0, 2), brkga.Quantised(1, 1, 2),
		brkga.Quantised(15, 3, 16), brkga.Quantised(2, 4, 16),
	}
	for i, got := range s.Distributions(decisions).Keys {
		if got != want[i] {
			t.Errorf("key %d: %+v, want %+v", i, got, want[i])
		}
	}
}

// Samples come up as often as their softmax says.
func TestSample(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := propose.Space{Devices: 1, PlaceLevels: 2, OrderLevels: 3}
	logits := random(r, 2, s.Columns())
	const n = 20000
	count := map[[3]int]float64{} // op, decision, choice
	for range n {
		decisions, err := s.Sample(logits, 2, r)
		if err != nil {
			t.Fatal(err)
		}
		for k, a := range decisions {
			count[[3]int{k / 4, k % 4, int(a)}]++
		}
	}
	choices := []int{2, 2, 3, 3}
	for i := range 2 {
		at := 0
		for j, c := range choices {
			p := make([]float64, c)
			nn.SoftmaxRow(p, logits.Row(i)[at:at+c])
			for k := range c {
				if got := count[[3]int{i, j, k}] / n; math.Abs(got-p[k]) > 0.015 {
					t.Errorf("op %d, decision %d, choice %d: %.3f, want %.3f", i, j, k, got, p[k])
				}
			}
			at += c
		}
	}
}

// The gradient is that of the loss, by finite differences.
func TestReinforceGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	s := propose.Space{Devices: 2, PlaceLevels: 2, OrderLevels: 4}
	logits := random(r, 5, s.Columns())
	o := &propose.Reinforce{Space: s, Ops: 3, Advantage: []float64{0.7, -1.3}, Entropy: 0.2}
	for range 2 {
		decisions, err := s.Sample(logits, 3, r)
		if err != nil {
			t.Fatal(err)
		}
		o.Decisions = append(o.Decisions, decisions)
	}
	loss := func() float64 {
		return o.Loss(nil, []nn.Mat{logits}, []nn.Mat{nn.NewMat(5, s.Columns())})
	}
	grad := nn.NewMat(5, s.Columns())
	o.Loss(nil, []nn.Mat{logits}, []nn.Mat{grad})
	for i := range logits.V {
		const h = 1e-2
		x := logits.V[i]
		logits.V[i] = x + h
		up := loss()
		logits.V[i] = x - h
		down := loss()
		logits.V[i] = x
		if want := (up - down) / (2 * h); math.Abs(want-float64(grad.V[i])) > 1e-4 {
			t.Errorf("logit %d: gradient %g, by differences %g", i, grad.V[i], want)
		}
	}
}

// Logits of weights that have diverged are an error, not a choice of the first level.
func TestSampleOfNoNumbers(t *testing.T) {
	s := propose.RunTime(2)
	logits := nn.NewMat(2, s.Columns())
	logits.Row(1)[3] = float32(math.NaN())
	if decisions, err := s.Sample(logits, 2, rand.New(rand.NewPCG(1, 1))); err == nil {
		t.Errorf("sampled %v", decisions)
	}
}

func Example() {
	s := propose.RunTime(2)
	decisions, err := s.Sample(nn.NewMat(3, s.Columns()), 3, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(len(decisions), len(s.Distributions(decisions).Keys), err)
	// Output: 18 9 <nil>
}
