package gas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/gas"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/regaltest"
	"placer/baselines/regal/sched"
	"placer/nn"
)

func policy(t testing.TB) *gas.Policy {
	t.Helper()
	p, err := gas.New(gas.Default(), regaltest.Backend(t), rand.New(rand.NewPCG(81, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Proposals follow from the random stream, on one goroutine or many, and leave
// 4,600 of 5,000 evaluations.
func TestPropose(t *testing.T) { regaltest.Propose(t, policy(t)) }

// A step moves the weights, the same way each time, and rewards are near -1: a
// proposal is about as good as none.
func TestTrain(t *testing.T) {
	tr := gas.DefaultTraining()
	tr.Steps, tr.Samples, tr.Evaluations = 3, 3, 200
	run := func() (all []float32, rewards []float64) {
		p := policy(t)
		before := append([]float32(nil), p.Params().Lookup("lstm.h").Value...)
		err := p.Train(context.Background(), tr, func(k int) (*sched.Problem, error) { return regaltest.Small(uint64(k % 2)), nil }, rand.New(rand.NewPCG(84, 0)), func(s gas.Step) { rewards = append(rewards, s.Reward) })
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
	if err := policy(t).Train(ctx, tr, func(int) (*sched.Problem, error) { return regaltest.Small(1), nil }, rand.New(rand.NewPCG(1, 1)), func(gas.Step) { t.Error("a step after the end") }); err != nil {
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
	e := sched.NewEvaluator(regaltest.Small(3), sched.RunTime)
	got, err := propose.Search(context.Background(), e, p, brkga.Default(), 1000, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(got.Evaluations, err)
	// Output: 1000 <nil>
}
