package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/graph"
	"placer/hw"
	"placer/hw/gpu/cuda/cudatest"
	"placer/hw/gpu/fake"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// mesh is a machine of n of the fake's devices with a link for each direction
// between two.
func mesh(n int, f *fake.Config, latency units.Seconds, bandwidth units.BytesPerSecond) *hw.Machine {
	m := &hw.Machine{Name: "mesh", Routes: make([][]int32, n*n)}
	for i := range n {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprintf("gpu:%d", i), Model: "Fake", Kind: hw.GPU, Memory: units.Bytes(f.Memory) / 8, MemoryBandwidth: 1e12, SMs: 100, Arch: "sm_80",
			Peak: map[string]units.FLOPsPerSecond{"f32": 1e13}, Launch: 3e-6})
		for j := range n {
			if i != j {
				m.Routes[i*n+j] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprintf("%d>%d", i, j), Bandwidth: bandwidth, Latency: latency})
			}
		}
	}
	return m
}

// fakeCosts is the time that the fake takes for an op.
type fakeCosts struct {
	g    *graph.Graph
	f    *fake.Config
	base float64 // of a kernel, nanoseconds
}

func (c fakeCosts) OpSeconds(i graph.OpID, _ int) units.Seconds {
	w := workOf(c.g, i, true)
	ns := 0.0
	switch w.kind {
	case nothing:
		return 1e-12 // the simulator wants a time
	case product:
		a, b, out := w.product.Bytes()
		flops := 2 * float64(w.product.Batch) * float64(w.product.M) * float64(w.product.N) * float64(w.product.K)
		ns = float64(w.parts) * (c.base + 1e9*max(flops/c.f.FLOPs[w.product.Type], float64(a+b+out)/c.f.Bandwidth))
	case stream:
		ns = c.base
		if w.in+w.out > 0 {
			ns += 1e9 * max(float64(w.in+w.out)/c.f.Bandwidth, float64(8*w.fma)*float64(w.in/16)/c.f.VectorFLOPs)
		}
	}
	repeats, kernels := c.g.Op(i).Iterations()
	return units.Seconds(float64(repeats) * (ns + float64(kernels-1)*c.base) / 1e9)
}

// randomGraph is a graph of n ops: products, streams, views, several outputs,
// control dependencies, parameters, iterations.
func randomGraph(r *rand.Rand, n int) *graph.Graph { return randomGraphOf(r, n, true) }

func randomGraphOf(r *rand.Rand, n int, control bool) *graph.Graph {
	b := graph.NewBuilder("random")
	var tensors []graph.TensorID
	var ops []graph.OpID
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Forward: graph.None, Bytes: graph.Auto}
		var in []graph.TensorID
		for range r.IntN(4) {
			if len(tensors) > 0 {
				in = append(in, tensors[len(tensors)-1-r.IntN(min(len(tensors), 8))])
			}
		}
		var out []graph.Tensor
		for range r.IntN(3) {
			out = append(out, graph.Tensor{Bytes: units.Bytes(1 + r.IntN(4<<20))})
		}
		switch r.IntN(4) {
		case 0:
			o.Kind, o.GEMM = "MatMul", graph.GEMM{Batch: 1 + int64(r.IntN(3)), M: 1 + int64(r.IntN(300)), N: 1 + int64(r.IntN(300)), K: 1 + int64(r.IntN(300))}
			o.FLOPs = o.GEMM.FLOPs()
		case 1:
			o.Kind, o.FLOPs = "Tanh", units.FLOPs(r.IntN(1e7))
		case 2:
			o.Kind, o.Resident = "ApplyAdam", units.Bytes(r.IntN(1<<20))
		default:
			o.Kind = "Reshape"
		}
		if r.IntN(6) == 0 {
			o.Repeats, o.Kernels = int64(r.IntN(4)), int64(r.IntN(3))
			o.FLOPs *= units.FLOPs(max(o.Repeats, 1))
		}
		if r.IntN(5) == 0 {
			o.Workspace = units.Bytes(r.IntN(1 << 20))
		}
		id := b.Op(o, in, out...)
		if len(ops) > 0 && r.IntN(4) == 0 && control {
			b.Control(ops[r.IntN(len(ops))], id)
		}
		for k := range out {
			tensors = append(tensors, b.Output(id, k))
		}
		ops = append(ops, id)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

func problem(t interface{ Fatal(...any) }, g *graph.Graph, m *hw.Machine, c sim.CostModel, r *rand.Rand, gpus func(d int) int) *Problem {
	s, err := sim.New(g, m, c, sim.Default())
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Decision: plan.Decision{Device: make([]uint8, g.NumOps()), Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}}
	for i := range p.Device {
		p.Device[i] = uint8(r.IntN(m.NumDevices()))
	}
	if r.IntN(3) == 0 {
		p.Priority = nil
	}
	predicted, err := s.Run(p, sim.Options{Trace: true})
	if predicted == nil {
		t.Fatal(err)
	}
	x := &Problem{Graph: g, Machine: m, Plan: p, Predicted: predicted}
	for d := range m.Devices {
		x.GPU = append(x.GPU, gpus(d))
	}
	return x
}

func testConfig(g *fake.GPU) Config {
	cfg := Default()
	cfg.Repeats, cfg.reserve, cfg.Clock = 2, 0, g.Clock
	return cfg
}

func separate(d int) int { return d }
func together(int) int   { return 0 }

func near(t interface{ Errorf(string, ...any) }, what string, got, want units.Seconds) {
	if math.Abs(float64(got/want)-1) > 1e-4 && math.Abs(float64(got-want)) > 2e-9 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestMeasuresWhatIsSimulated: on GPUs that take exactly the predicted times, with
// a host that takes none, the measured step is the simulated one: the order, the
// waits and the transfers are those of the plan. Both for devices on GPUs of their
// own and for devices that share one, eagerly and as a graph. The fake refuses
// waits for events that nothing has recorded and memory that is not there.
func TestMeasuresWhatIsSimulated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		f := fake.Default()
		f.Devices, f.Call = 3, 0
		for _, c := range []struct {
			name      string
			mode      Mode
			gpus      func(int) int
			latency   units.Seconds
			bandwidth units.BytesPerSecond
			base      float64
		}{
			{"own GPUs", Eager, separate, units.Seconds(f.Copy / 1e9), units.BytesPerSecond(f.PeerBandwidth), f.Launch},
			{"one GPU", Eager, together, 50e-6, 10e9, f.Launch},
		} {
			// Between GPUs the word that an op has ended goes by an event, which takes no
			// time; the simulator sends a message.
			g := randomGraphOf(r, 1+r.IntN(60), c.name != "own GPUs")
			costs := fakeCosts{g, &f, c.base}
			p := problem(t, g, mesh(3, &f, c.latency, c.bandwidth), costs, r, c.gpus)
			d := fake.New(f)
			cfg := testConfig(d)
			cfg.Mode = c.mode
			got, err := Run(context.Background(), cfg, p, costs, d, d.BLAS())
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			near(t, c.name+": step", got.Makespan, p.Predicted.Makespan)
			if len(got.Trace.Ops) != g.NumOps() || len(got.Trace.Transfers) < len(p.Predicted.Trace.Transfers) {
				t.Errorf("%s: %d ops and %d transfers traced", c.name, len(got.Trace.Ops), len(got.Trace.Transfers))
			}
			start := map[graph.OpID]units.Seconds{}
			for _, x := range p.Predicted.Trace.Ops {
				start[x.Op] = x.Start
			}
			for _, x := range got.Trace.Ops {
				if math.Abs(float64(x.Start-start[x.Op])) > 1e-8+1e-5*float64(start[x.Op]) && workOf(g, x.Op, true).kind != nothing {
					t.Errorf("%s: op %d starts at %v, want %v", c.name, x.Op, x.Start, start[x.Op])
				}
			}
			for dev := range got.Slab {
				if got.Slab[dev] < got.PeakBytes[dev] {
					t.Errorf("slab of %v below the peak %v", got.Slab[dev], got.PeakBytes[dev])
				}
			}
		}
	})
}

// TestGraphMode: a captured step takes what nodes of a graph cost, and eager mode
// more on a slow host, which says so.
func TestGraphMode(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := randomGraph(r, 200)
	f := fake.Default()
	f.Call = 0
	p := problem(t, g, mesh(2, &f, 20e-6, 10e9), fakeCosts{g, &f, f.Launch}, r, together)
	run := func(mode Mode, call float64) *Result {
		f.Call = call
		d := fake.New(f)
		cfg := testConfig(d)
		cfg.Mode = mode
		got, err := Run(context.Background(), cfg, p, fakeCosts{g, &f, f.Launch}, d, d.BLAS())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	eager, captured, slow, slowCaptured := run(Eager, 0), run(Captured, 0), run(Eager, 50_000), run(Captured, 50_000)
	if captured.Makespan >= eager.Makespan {
		t.Errorf("a graph takes %v, an eager step %v", captured.Makespan, eager.Makespan)
	}
	if x := float64(slowCaptured.Makespan / captured.Makespan); x < 0.99 || x > 1.01 { // but for the one launch
		t.Errorf("a graph takes %v on a slow host, %v on a fast one", slowCaptured.Makespan, captured.Makespan)
	}
	if slow.Makespan < 2*eager.Makespan || len(slow.Notes) == 0 || !strings.Contains(slow.Notes[0], "issue") {
		t.Errorf("a slow host: step %v, notes %q", slow.Makespan, slow.Notes)
	}
	if len(eager.Notes) > 0 {
		t.Errorf("notes %q", eager.Notes)
	}
}

// TestOutOfMemory: a plan that does not fit its devices, devices that do not fit
// their GPU.
func TestOutOfMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := randomGraph(r, 100)
	f := fake.Default()
	costs := fakeCosts{g, &f, f.Launch}
	small := mesh(2, &f, 1e-5, 1e10)
	for i := range small.Devices {
		small.Devices[i].Memory = 1 << 20
	}
	for name, c := range map[string]struct {
		m      *hw.Machine
		memory uint64
	}{"devices of 1 MiB": {small, f.Memory}, "a GPU of 100 MiB": {mesh(2, &f, 1e-5, 1e10), 100 << 20}} {
		p := problem(t, g, c.m, costs, r, together)
		f.Memory = c.memory
		d := fake.New(f)
		_, err := Run(context.Background(), testConfig(d), p, costs, d, d.BLAS())
		var oom *OutOfMemory
		if !errors.As(err, &oom) || oom.Need <= oom.Have {
			t.Errorf("%s: error %v", name, err)
		}
		ctx, _ := d.Retain(0)
		d.SetCurrent(ctx)
		if free, total, _ := d.MemInfo(); free != total {
			t.Errorf("%s: %d bytes were not given back", name, total-free)
		}
	}
}

// TestHost: a device that is the host's processor takes part eagerly, and not in
// a graph.
func TestHost(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	g := randomGraph(r, 30)
	f := fake.Default()
	costs := fakeCosts{g, &f, f.Launch}
	p := problem(t, g, mesh(3, &f, 1e-5, 1e10), costs, r, func(d int) int { return []int{0, Host, 1}[d] })
	d := fake.New(f)
	got, err := Run(context.Background(), testConfig(d), p, costs, d, d.BLAS())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Notes) == 0 || got.Makespan <= 0 {
		t.Errorf("step %v, notes %q", got.Makespan, got.Notes)
	}
	cfg := testConfig(d)
	cfg.Mode = Captured
	if _, err := Run(context.Background(), cfg, p, costs, d, d.BLAS()); err == nil || !strings.Contains(err.Error(), "eagerly") {
		t.Errorf("as a graph: error %v", err)
	}
}

// TestPartition: devices on one GPU have multiprocessors of their own.
func TestPartition(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	g := randomGraph(r, 30)
	f := fake.Default()
	costs := fakeCosts{g, &f, f.Launch}
	p := problem(t, g, mesh(4, &f, 1e-5, 1e10), costs, r, together)
	d := fake.New(f)
	cfg := testConfig(d)
	cfg.Partition, cfg.Warm = true, NewWarm(d)
	var got *Result
	for range 20 { // each gives its parts back, of which a driver has few
		var err error
		if got, err = Run(context.Background(), cfg, p, costs, d, d.BLAS()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range got.SMs {
		if n != f.SMs/4 {
			t.Errorf("multiprocessors %v", got.SMs)
		}
	}
}

// TestLayout: what lives at one time lies apart, and the slab is no smaller than
// the simulator's peak.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		g := randomGraph(r, 1+r.IntN(80))
		f := fake.Default()
		p := problem(t, g, mesh(2, &f, 1e-5, 1e10), fakeCosts{g, &f, f.Launch}, r, separate)
		if r.IntN(2) == 0 {
			g = fusible(r, 1+r.IntN(80))
			p = fuseAll(t, g, mesh(2, &f, 1e-5, 1e10), fakeCosts{g, &f, f.Launch}, r, separate)
		}
		c := compile(p)
		l := planMemory(g, p.Machine, p.Plan.Device, c, p.Predicted.Trace)
		start, end := make([]float64, g.NumOps()), make([]float64, g.NumOps())
		for _, x := range p.Predicted.Trace.Ops {
			for _, i := range append([]graph.OpID{x.Op}, x.Fused...) {
				start[i], end[i] = float64(x.Start), float64(x.End)
			}
		}
		hold := lifetimes(g, p.Plan.Device, c, p.Predicted.Trace, start, end)
		for i, a := range hold {
			if a.t == sim.NoTensor {
				continue
			}
			at := l.tensor[place{a.t, a.dev}]
			if at%align != 0 || at+a.bytes > l.slab[a.dev] {
				t.Fatalf("tensor %d at %d of a slab of %d", a.t, at, l.slab[a.dev])
			}
			for _, b := range hold[:i] {
				if b.t == sim.NoTensor || a.dev != b.dev || a.until <= b.from || b.until <= a.from {
					continue
				}
				if bt := l.tensor[place{b.t, b.dev}]; at < bt+b.bytes && bt < at+a.bytes {
					t.Fatalf("tensors %d and %d overlap in time and in place", a.t, b.t)
				}
			}
		}
		for d := range l.slab {
			if units.Bytes(l.slab[d]) < p.Predicted.PeakBytes[d] {
				t.Errorf("slab %d, peak %v", l.slab[d], p.Predicted.PeakBytes[d])
			}
		}
	})
}

// TestHoles compares the allocator with a map of bytes.
func TestHoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h holes
		used := map[uint64]bool{}
		type block struct{ at, n uint64 }
		var live []block
		for range 60 {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				k := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				for i := range live[k].n {
					delete(used, live[k].at+i)
				}
				h.give(live[k].at, live[k].n)
				live = append(live[:k], live[k+1:]...)
				continue
			}
			n := uint64(rapid.IntRange(1, 9).Draw(t, "bytes"))
			at := h.take(n)
			for i := range n {
				if used[at+i] {
					t.Fatalf("byte %d is taken twice", at+i)
				}
				used[at+i] = true
			}
			live = append(live, block{at, n})
		}
	})
}

func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	g := randomGraph(r, 10)
	f := fake.Default()
	costs := fakeCosts{g, &f, f.Launch}
	d := fake.New(f)
	for name, change := range map[string]func(*Problem, *Config){
		"no GPU 7":   func(p *Problem, _ *Config) { p.GPU[0] = 7 },
		"no trace":   func(p *Problem, _ *Config) { p.Predicted = &sim.Result{} },
		"other plan": func(p *Problem, _ *Config) { p.Plan.Device[3] = 1 - p.Plan.Device[3] },
		"op twice":   func(p *Problem, _ *Config) { p.Predicted.Trace.Ops[2].Op = p.Predicted.Trace.Ops[1].Op },
		"op missing": func(p *Problem, _ *Config) { p.Predicted.Trace.Ops = p.Predicted.Trace.Ops[1:] },
		"fuses none": func(p *Problem, _ *Config) { x := p.Predicted.Trace.Ops; x[0].Fused = append(x[0].Fused, x[1].Op) },
		"no clock":   func(_ *Problem, c *Config) { c.Clock = nil },
		"no repeat":  func(_ *Problem, c *Config) { c.Repeats = 0 },
	} {
		p := problem(t, g, mesh(2, &f, 1e-5, 1e10), costs, r, separate)
		cfg := testConfig(d)
		change(p, &cfg)
		if _, err := Run(context.Background(), cfg, p, costs, d, d.BLAS()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	b := graph.NewBuilder("endless")
	b.Op(graph.Op{Name: "loop", Kind: "Loop", Repeats: 1 << 30, Bytes: 1 << 40, Forward: graph.None}, nil)
	endless, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	costs.g = endless
	p := problem(t, endless, mesh(2, &f, 1e-5, 1e10), costs, r, separate)
	if _, err := Run(context.Background(), testConfig(d), p, costs, d, d.BLAS()); err == nil || !strings.Contains(err.Error(), "op 0 (loop) launches 1073741824 kernels, want at most 1048576") {
		t.Errorf("a billion iterations: error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	costs.g = g
	p = problem(t, g, mesh(2, &f, 1e-5, 1e10), costs, r, separate)
	if _, err := Run(ctx, testConfig(d), p, costs, d, d.BLAS()); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
}

// TestRealGPU measures a small step on this host's GPU, as two devices.
func TestRealGPU(t *testing.T) {
	d, b := cudatest.Open(t)
	r := rand.New(rand.NewPCG(1, 2))
	g := randomGraph(r, 100)
	f := fake.Default()
	m := mesh(2, &f, 50e-6, 10e9)
	costs, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, m, costs, r, together)
	clock := fake.New(f) // the host's time is not looked at
	for _, mode := range []Mode{Eager, Captured} {
		cfg := testConfig(clock)
		cfg.Mode = mode
		got, err := Run(context.Background(), cfg, p, costs, d, b)
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		t.Logf("%v: %v measured, %v predicted", mode, got.Makespan, p.Predicted.Makespan)
		if !(got.Makespan > 0) {
			t.Errorf("%v: step of %v", mode, got.Makespan)
		}
	}
}
