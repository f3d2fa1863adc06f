package sim_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

// gnmt8 returns the training graph of GNMT with eight layers and eight P100s. The
// graph is made once.
var gnmt8 = sync.OnceValues(func() (*graph.Graph, *hw.Machine) {
	g, err := workloads.Build("gnmt8")
	if err != nil {
		panic(err)
	}
	m, err := hw.Take("p100", 8, false)
	if err != nil {
		panic(err)
	}
	return g, m
})

func simulator(b *testing.B, cfg sim.Config) (*sim.Simulator, *graph.Graph) {
	g, m := gnmt8()
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		b.Fatal(err)
	}
	s, err := sim.New(g, m, cost, cfg)
	if err != nil {
		b.Fatal(err)
	}
	return s, g
}

// byLayer puts a layer on each device, and what has none with the last.
func byLayer(g *graph.Graph, d int) []uint8 {
	device := make([]uint8, g.NumOps())
	group := map[int32]uint8{}
	for i := range device {
		op := g.Op(graph.OpID(i))
		layer := int(op.Layer)
		if layer < 1 || layer > d {
			layer = d
		}
		device[i] = uint8(layer - 1)
		if op.Group > 0 {
			if x, ok := group[op.Group]; ok {
				device[i] = x
			}
			group[op.Group] = device[i]
		}
	}
	return device
}

// scattered puts a share of the ops anywhere.
func scattered(r *rand.Rand, device []uint8, d int, share float64) []uint8 {
	out := append([]uint8(nil), device...)
	for i := range out {
		if r.Float64() < share {
			out[i] = uint8(r.IntN(d))
		}
	}
	return out
}

// benchmark reports simulated ops per second of the wall clock and of the core.
func benchmark(b *testing.B, s *sim.Simulator, device []uint8, priority []int32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.Evaluate(plan.Decision{Device: device, Priority: priority})
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	for b.Loop() {
		s.Evaluate(plan.Decision{Device: device, Priority: priority})
	}
	cpu := cpuTime() - start
	ops := float64(len(device)) * float64(b.N)
	b.ReportMetric(ops/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(ops/cpu.Seconds(), "ops/core-s")
}

func BenchmarkSimulate(b *testing.B) {
	for _, memory := range []bool{true, false} {
		b.Run(fmt.Sprintf("ops=84k/devices=8/memory=%v", memory), func(b *testing.B) {
			s, g := simulator(b, sim.Config{Memory: memory})
			benchmark(b, s, byLayer(g, 8), sim.CriticalPathPriority(g, s.OpSeconds(0)))
		})
	}
}

// The time depends on how many tensors cross devices.
func BenchmarkSimulateScattered(b *testing.B) {
	for _, share := range []float64{0.01, 0.1, 1} {
		b.Run(fmt.Sprintf("ops=84k/devices=8/share=%v", share), func(b *testing.B) {
			s, g := simulator(b, sim.Default())
			device := scattered(rand.New(rand.NewPCG(1, 1)), byLayer(g, 8), 8, share)
			benchmark(b, s, device, sim.CriticalPathPriority(g, s.OpSeconds(0)))
		})
	}
}

func BenchmarkSimulateFIFO(b *testing.B) {
	b.Run("ops=84k/devices=8", func(b *testing.B) {
		s, g := simulator(b, sim.Default())
		benchmark(b, s, byLayer(g, 8), nil)
	})
}

func BenchmarkSimulateFairShare(b *testing.B) {
	b.Run("ops=84k/devices=8", func(b *testing.B) {
		s, g := simulator(b, sim.Config{Memory: true, Contention: sim.FairShare})
		benchmark(b, s, byLayer(g, 8), sim.CriticalPathPriority(g, s.OpSeconds(0)))
	})
}

func BenchmarkRun(b *testing.B) {
	s, g := simulator(b, sim.Default())
	p := &plan.Plan{Decision: plan.Decision{Device: byLayer(g, 8), Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}}
	for b.Loop() {
		if _, err := s.Run(p, sim.Options{Trace: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLowerBound(b *testing.B) {
	s, _ := simulator(b, sim.Default())
	for b.Loop() {
		s.LowerBound()
	}
}
