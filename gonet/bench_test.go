package gonet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"placer/graphsage"
	"placer/ppo"
)

// ladder gives every node up to five neighbours near it.
func ladder(n int) *graphsage.Neighbours {
	l := &graphsage.Neighbours{Start: []int32{0}}
	for v := range n {
		for _, d := range []int{-7, -2, -1, 1, 13} {
			if u := v + d; u >= 0 && u < n {
				l.Index = append(l.Index, int32(u))
			}
		}
		l.Start = append(l.Start, int32(len(l.Index)))
	}
	return l
}

// BenchmarkPolicy measures the network at the sizes of GDP with 8 devices: a
// forward pass, and a gradient of the PPO objective of 16 samples, which share
// one pass.
func BenchmarkPolicy(b *testing.B) {
	for _, n := range []int{1000, 2600, 9000} {
		r := rand.New(rand.NewPCG(1, 2))
		net := newNetwork(b, Default(64, 8), 1, 1)
		batch := &Batch{X: randomX(r, n, 64), Neighbours: ladder(n)}
		o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
		for k := range 16 {
			o.Actions = append(o.Actions, make([]int32, n))
			o.LogProb = append(o.LogProb, make([]float32, n))
			o.Advantage = append(o.Advantage, []float32{float32(k) - 7.5})
			o.Return = append(o.Return, -1)
			out, err := net.Forward(batch)
			if err != nil {
				b.Fatal(err)
			}
			ppo.Sample(out.Logits, 1, r, o.Actions[k], o.LogProb[k])
		}
		report := func(b *testing.B) {
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/(float64(n)/1000), "ms/1000nodes")
		}
		b.Run(fmt.Sprintf("pass=forward/nodes=%d/blas=%s", n, net.backend.Name()), func(b *testing.B) {
			for b.Loop() {
				if _, err := net.Forward(batch); err != nil {
					b.Fatal(err)
				}
			}
			report(b)
		})
		b.Run(fmt.Sprintf("pass=both/nodes=%d/blas=%s", n, net.backend.Name()), func(b *testing.B) {
			for b.Loop() {
				if _, err := net.Backward(batch, o); err != nil {
					b.Fatal(err)
				}
			}
			report(b)
		})
	}
}
