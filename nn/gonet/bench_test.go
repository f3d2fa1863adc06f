//go:build unix

package gonet

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
	"placer/ppo"
)

// BenchmarkPolicy measures the network at the sizes of GDP with 8 devices: a
// forward pass, and a gradient of the PPO objective of 16 samples, which share
// one pass.
func BenchmarkPolicy(b *testing.B) {
	for _, backend := range nntest.Backends(b) {
		for _, n := range []int{1000, 2600, 9000} {
			benchmarkPolicy(b, backend, n)
		}
	}
}

func benchmarkPolicy(b *testing.B, backend *nn.Backend, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	net, err := New(Default(64, 8), r, backend)
	if err != nil {
		b.Fatal(err)
	}
	batch := &Batch{X: randomX(r, n, 64), Neighbours: ladder(n)}
	out, err := net.Forward(batch)
	if err != nil {
		b.Fatal(err)
	}
	o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
	for k := range 16 {
		o.Actions = append(o.Actions, make([]int32, n))
		o.LogProb = append(o.LogProb, make([]float32, n))
		o.Advantage = append(o.Advantage, []float32{float32(k) - 7.5})
		o.Return = append(o.Return, -1)
		ppo.Sample(out.Logits, 1, r, o.Actions[k], o.LogProb[k])
	}
	for _, pass := range []struct {
		name string
		run  func() error
	}{
		{"forward", func() error { _, err := net.Forward(batch); return err }},
		{"both", func() error { _, err := net.Backward(batch, o); return err }},
	} {
		b.Run(fmt.Sprintf("blas=%s/pass=%s/nodes=%d", backend.Name(), pass.name, n), func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				if err := pass.run(); err != nil {
					b.Fatal(err)
				}
			}
			per := 1000 / float64(b.N) / float64(n) * 1000
			b.ReportMetric(b.Elapsed().Seconds()*per, "ms/1000nodes")
			b.ReportMetric((processorTime(b)-before)*per, "cpu-ms/1000nodes")
		})
	}
}

// processorTime returns the seconds of processor time this process has used.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)*1e-6
}

// BenchmarkCompile measures building the graph of a new shape.
func BenchmarkCompile(b *testing.B) {
	net := newNetwork(b, Default(64, 8), 1, 1)
	for _, n := range []int{100, 10000} {
		batch := &Batch{X: nn.NewMat(n, 64), Neighbours: ladder(n)}
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := net.compile(batch, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUpdate measures a gradient and an optimiser step on a graph of few
// units, where the work per weight counts.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{30, 100, 300} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			net := newNetwork(b, Default(64, 8), 1, 1)
			batch := &Batch{X: randomX(rand.New(rand.NewPCG(1, 2)), n, 64), Neighbours: ladder(n)}
			o := &nn.CrossEntropy{Labels: make([]int32, n)}
			for b.Loop() {
				if _, err := net.Backward(batch, o); err != nil {
					b.Fatal(err)
				}
				if _, err := net.Update(1e-3); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
