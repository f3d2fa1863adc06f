package propose_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func stream(k uint64) *rand.Rand { return rand.New(rand.NewPCG(51, k)) }

type spending struct {
	n   int
	err error
}

func (s spending) Propose(_ context.Context, p *sched.Problem, o sched.Objective, _ *rand.Rand) (*propose.Proposal, error) {
	return &propose.Proposal{Distributions: brkga.Uniform{}, Pin: propose.Heaviest(p, o), Evaluations: s.n, EliteBias: 0.6}, s.err
}

func TestBudgetAndPin(t *testing.T) {
	p := synth.Default().Generate(stream(1))
	for _, o := range []sched.Objective{sched.RunTime, sched.PeakMemory} {
		e := sched.NewEvaluator(p, o)
		got, err := propose.Search(context.Background(), e, spending{n: 400}, brkga.Default(), 1000, stream(2))
		if err != nil || got.Evaluations != 1000 {
			t.Fatalf("%d evaluations, %v", got.Evaluations, err)
		}
		if d := e.Device()[propose.Heaviest(p, o)]; d != 0 {
			t.Errorf("%v: the pinned op is on device %d", o, d)
		}
		s, err := e.Schedule(append([]uint8(nil), e.Device()...), append([]int32(nil), e.Sequence()...))
		if err != nil || o.Cost(p.Machine(), s) != got.Cost {
			t.Errorf("%v: the schedule left behind scores %+v, %v; want %g", o, s, err, got.Cost)
		}
		if _, err := propose.Search(context.Background(), e, spending{n: 1000}, brkga.Default(), 1000, stream(2)); err == nil {
			t.Error("a proposal that takes all passed")
		}
		if _, err := propose.Search(context.Background(), e, spending{err: errors.New("no")}, brkga.Default(), 1000, stream(2)); err == nil {
			t.Error("an error is lost")
		}
	}
}

func ExampleSearch() {
	p := synth.Default().Generate(rand.New(rand.NewPCG(1, 0)))
	e := sched.NewEvaluator(p, sched.RunTime)
	uniform := brkga.Run(context.Background(), e, brkga.Uniform{}, brkga.Default(), brkga.Budget{Evaluations: 2000}, rand.New(rand.NewPCG(1, 1)))
	fixed, err := propose.Search(context.Background(), e, propose.Fixed{Shape: brkga.Shape{Alpha: 0.5, Beta: 0.5}}, brkga.Default(), 2000, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(uniform.Cost > p.LowerBound(), fixed.Cost > p.LowerBound(), err)
	// Output: true true <nil>
}
