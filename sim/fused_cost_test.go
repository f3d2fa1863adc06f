package sim_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/workloads"
)

// The simulator and the roofline price a kernel alike, on every kernel of real
// graphs fused as far as it goes.
func TestKernelsTakeWhatTheRooflineSays(t *testing.T) {
	for _, name := range []string{"rnnlm:layers=2,unroll=3", "wavenet2", "trfxl2"} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hw.Take("v100", 1, false)
		if err != nil {
			t.Fatal(err)
		}
		model, err := roofline.New(g, m, roofline.Default())
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(g, m, model, sim.Default())
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Plan{Decision: plan.Decision{Device: make([]uint8, g.NumOps()), Fusion: all(g)}}
		r, err := s.Run(p, sim.Options{Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		several := 0
		for _, x := range r.Trace.Ops {
			ops := append([]graph.OpID{x.Op}, x.Fused...)
			c := model.Kernel(ops, 0)
			if want, got := float64(x.Start)+float64(c.Seconds()), float64(x.End); abs(got-want) > 1e-12*want {
				t.Fatalf("%s: kernel of %s and %d more takes until %v, roofline until %v", name, g.Op(x.Op).Name, len(x.Fused), got, want)
			}
			if len(ops) == 1 {
				continue
			}
			several++
			alone := 0.0
			for _, i := range ops {
				alone += float64(model.OpSeconds(i, 0))
			}
			if float64(c.Seconds()) > alone {
				t.Errorf("%s: kernel of %s and %d more takes %v, its ops alone %v s", name, g.Op(x.Op).Name, len(x.Fused), c.Seconds(), alone)
			}
		}
		if several == 0 {
			t.Errorf("%s: nothing was fused", name)
		}
		without, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: p.Device}}, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d ops, %d kernels; %v without fusion, %v with; bounds %v, %v", name, g.NumOps(), r.Kernels, without.Makespan, r.Makespan, s.LowerBound(t.Context()).Seconds, s.FusedLowerBound().Seconds)
	}
}

func abs(x float64) float64 { return max(x, -x) }

// all fuses whatever may be fused.
func all(g *graph.Graph) []uint8 {
	f := make([]uint8, g.NumOps())
	for i := range f {
		f[i] = 1
	}
	return f
}

func BenchmarkSimulateFused(b *testing.B) {
	for _, levels := range []int{0, 1, 8} {
		b.Run(fmt.Sprintf("ops=84k/devices=8/levels=%d", levels), func(b *testing.B) {
			s, g := simulator(b, sim.Default())
			device, priority := byLayer(g, 8), sim.CriticalPathPriority(g, s.OpSeconds(0))
			fusion := make([]uint8, g.NumOps())
			r := rand.New(rand.NewPCG(1, 1))
			for i := range fusion {
				if levels > 0 {
					fusion[i] = uint8(1 + r.IntN(levels))
				}
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s.Evaluate(plan.Decision{Device: device, Priority: priority, Fusion: fusion})
			b.ReportAllocs()
			able := fuse.NewRules(g).Fusible()
			for n := 0; b.Loop(); n++ {
				if levels > 0 { // another fusion each time
					k := able[n%len(able)]
					fusion[k] = uint8(1+levels) - fusion[k]
					if levels == 1 {
						fusion[k] = uint8(n & 1)
					}
				}
				s.Evaluate(plan.Decision{Device: device, Priority: priority, Fusion: fusion})
			}
			b.ReportMetric(float64(len(device))*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

func BenchmarkFuse(b *testing.B) {
	g, _ := gnmt8()
	f := fuse.NewFuser(fuse.NewRules(g))
	device, fusion := byLayer(g, 8), all(g)
	for b.Loop() {
		f.Fuse(device, fusion)
	}
}
