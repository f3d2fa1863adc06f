package synth_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

// BenchmarkEvaluate judges a random chromosome of a synthetic graph of 127 ops.
func BenchmarkEvaluate(b *testing.B) {
	p := ofSize(125)
	for _, o := range []sched.Objective{sched.RunTime, sched.PeakMemory} {
		b.Run(o.String(), func(b *testing.B) {
			e := sched.NewEvaluator(p, o)
			keys := make([][]float32, 64)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range keys {
				keys[i] = make([]float32, p.Keys())
				brkga.Uniform{}.Sample(r, keys[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e.Cost(keys[i&63])
			}
		})
	}
}

// BenchmarkBRKGA5K is one search of 5,000 evaluations on the same graph; the paper
// took 0.89 s for one.
func BenchmarkBRKGA5K(b *testing.B) {
	p := ofSize(125)
	e := sched.NewEvaluator(p, sched.RunTime)
	for b.Loop() {
		brkga.Run(context.Background(), e, brkga.Uniform{}, brkga.Default(), brkga.Budget{Evaluations: 5000}, rand.New(rand.NewPCG(1, 2)))
	}
}

func ofSize(n int) *sched.Problem {
	c := synth.Default()
	c.MinOps, c.MaxOps = n, n
	return c.Generate(rand.New(rand.NewPCG(3, 4)))
}
