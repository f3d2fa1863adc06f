package gas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/gas"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/nn"
)

func policy(t testing.TB) *gas.Policy {
	t.Helper()
	b, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := gas.New(gas.Default(), b, rand.New(rand.NewPCG(81, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func small(k uint64) *sched.Problem {
	c := synth.Default()
	c.MaxOps = 60
	return c.Generate(rand.New(rand.NewPCG(82, k)))
}

// Proposals follow from the random stream, on one goroutine or many, and leave
// 4,600 of 5,000 evaluations.
func TestPropose(t *testing.T) {
	p := policy(t)
	q := small(1)
	stream := func() *rand.Rand { return rand.New(rand.NewPCG(83, 0)) }
	want, err := p.Propose(context.Background(), q, sched.RunTime, stream())
	if err != nil {
		t.Fatal(err)
	}
	if want.Evaluations != 400 || want.Pin != propose.Heaviest(q, sched.RunTime) || len(want.Distributions.(brkga.Beta).Keys) != 3*q.N() {
		t.Errorf("%d evaluations, pin %d", want.Evaluations, want.Pin)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			got, err := p.Propose(context.Background(), q, sched.RunTime, stream())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("another proposal, %v", err)
			}
		})
	}
	wait.Wait()
	m := q.Machine()
	m.Devices = 3
	three, err := q.With(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(context.Background(), three, sched.RunTime, stream()); err == nil {
		t.Error("three devices passed")
	}
}

// A step moves the weights, the same way each time, and rewards are near -1: a
// proposal is about as good as none.
func TestTrain(t *testing.T) {
	tr := gas.DefaultTraining()
	tr.Steps, tr.Samples, tr.Evaluations = 3, 3, 200
	run := func() (all []float32, rewards []float64) {
		p := policy(t)
		before := append([]float32(nil), p.Params().Lookup("lstm.h").Value...)
		err := p.Train(context.Background(), tr, func(k int) (*sched.Problem, error) { return small(uint64(k % 2)), nil }, rand.New(rand.NewPCG(84, 0)), func(s gas.Step) { rewards = append(rewards, s.Reward) })
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(before, p.Params().Lookup("lstm.h").Value) {
			t.Error("the weights have not moved")
		}
		for _, q := range p.Params().All() {
			all = append(all, q.Value...)
		}
		return all, rewards
	}
	a, rewards := run()
	b, _ := run()
	if !reflect.DeepEqual(a, b) {
		t.Error("the same stream trains other weights")
	}
	for _, r := range rewards {
		if r > -0.7 || r < -1.5 {
			t.Errorf("reward %g", r)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := policy(t).Train(ctx, tr, func(int) (*sched.Problem, error) { return small(1), nil }, rand.New(rand.NewPCG(1, 1)), func(gas.Step) { t.Error("a step after the end") }); err != nil {
		t.Error(err)
	}
}

func Example() {
	b, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := gas.New(gas.Default(), b, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		fmt.Println(err)
		return
	}
	e := sched.NewEvaluator(small(3), sched.RunTime)
	got, err := propose.Search(context.Background(), e, p, brkga.Default(), 1000, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(got.Evaluations, err)
	// Output: 1000 <nil>
}
