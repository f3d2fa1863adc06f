package propose_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func diamond(t testing.TB) *sched.Problem {
	t.Helper()
	p, err := sched.New(sched.Spec{
		Name: "diamond", Time: []float64{1, 5, 4, 2}, Internal: []int64{0, 0, 20, 0}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{
			{Producer: 0, Consumers: []int32{1, 2}, Size: 10},
			{Producer: 1, Consumers: []int32{3}, Size: 5},
			{Producer: 2, Consumers: []int32{3}, Size: 5},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The columns of a small graph, by hand: sizes over 20, times over 5.
func TestByHand(t *testing.T) {
	p := diamond(t)
	got := propose.NewFeatures(context.Background(), p, sched.RunTime, 1, 100, rand.New(rand.NewPCG(1, 2)))
	want := [][]float32{
		{0, 0.5, 0, 0, 0, 1.8, 0.2, 0},
		{0.5, 0.25, 0, 0, 0.2, 0.4, 1, 1},
		{0.5, 0.25, 1, 1, 0.2, 0.4, 0.8, 0},
		{0.5, 0, 0, 0, 1.8, 0, 0.4, 0},
	}
	if got.F != 11 || got.Evaluations != 100 {
		t.Fatalf("%d columns after %d evaluations", got.F, got.Evaluations)
	}
	for i, w := range want {
		row := got.V[i*got.F : (i+1)*got.F]
		for k := range w {
			if d := row[k] - w[k]; d > 1e-6 || d < -1e-6 {
				t.Errorf("op %d, %s: %g, want %g", i, propose.FeatureNames(2)[k], row[k], w[k])
			}
		}
		if s := row[8] + row[9]; s < 0.999 || s > 1.001 {
			t.Errorf("op %d: shares sum to %g", i, s)
		}
	}
	if first, last := got.V[10], got.V[3*11+10]; first != 0 || last < 0.749 || last > 0.751 {
		t.Errorf("places %g and %g, want 0 and 3/4", first, last)
	}
	if got.V[11+8] < 0.999 {
		t.Errorf("the pinned op is on device 0 in %g of the population", got.V[11+8])
	}
	memory := propose.NewFeatures(context.Background(), p, sched.PeakMemory, -1, 50, rand.New(rand.NewPCG(1, 2)))
	for i := range 4 {
		if !slices.Equal(memory.V[i*11+4:i*11+8], []float32{0, 0, 0, 0}) {
			t.Error("the peak-memory task sees times")
		}
	}
}

func ExampleNewFeatures() {
	p := synth.Default().Generate(rand.New(rand.NewPCG(1, 0)))
	t := propose.NewFeatures(context.Background(), p, sched.RunTime, -1, propose.FeatureEvaluations, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(t.N == p.N(), t.F, len(propose.FeatureNames(2)))
	// Output: true 11 11
}
