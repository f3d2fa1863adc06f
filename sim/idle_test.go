package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/plan"
)

// idleByTrace says of every op what history.idle does, from what a trace tells.
// delivery is how long after a transfer's end its tensor is there; where it is nil,
// transfers hold links.
func idleByTrace(g *graph.Graph, tr *Trace, delivery func(TransferSpan) float64) []float64 {
	sender := delivery != nil
	if !sender {
		delivery = func(TransferSpan) float64 { return 0 }
	}
	kernel := make([]int, g.NumOps()) // in tr.Ops
	for k, x := range tr.Ops {
		for _, i := range append([]graph.OpID{x.Op}, x.Fused...) {
			kernel[i] = k
		}
	}
	arrives := func(from int, t graph.TensorID, device int) float64 {
		x := tr.Ops[from]
		if x.Device == device {
			return float64(x.End)
		}
		for _, y := range tr.Transfers {
			if y.To == device && y.Tensor == t && (t != NoTensor || y.Op == x.Op) {
				return float64(y.End) + delivery(y)
			}
		}
		panic("nothing arrives")
	}
	var ready func(i graph.OpID) float64
	ready = func(i graph.OpID) (at float64) {
		k := kernel[i]
		input := func(p graph.OpID, t graph.TensorID) {
			if kernel[p] == k {
				at = max(at, ready(p))
			} else {
				at = max(at, arrives(kernel[p], t, tr.Ops[k].Device))
			}
		}
		for _, t := range g.Inputs(i) {
			input(g.Tensor(t).Producer, t)
		}
		for _, p := range g.Control(i) {
			if !sender || tr.Ops[kernel[p]].Device == tr.Ops[k].Device {
				input(p, NoTensor)
			}
		}
		return at
	}
	idle := make([]float64, g.NumOps())
	for i := range idle {
		own := tr.Ops[kernel[i]]
		from, to := ready(graph.OpID(i)), float64(own.Start)
		idle[i] = to - from
		for _, x := range tr.Ops {
			if x.Device == own.Device {
				idle[i] -= max(0, min(float64(x.End), to)-max(float64(x.Start), from))
			}
		}
		copied := map[graph.TensorID]bool{}
		for _, x := range tr.Transfers {
			if sender && x.From == own.Device && !copied[x.Tensor] {
				copied[x.Tensor] = true
				idle[i] -= max(0, min(float64(x.End), to)-max(float64(x.Start), from))
			}
		}
	}
	return idle
}

// The idle time before an op's kernel is what the spans of a trace leave.
func TestIdle(t *testing.T) {
	some := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 31))
		p, cost, fusion := fusedProblem(r, 80, 5)
		fusion = slices.Repeat([]uint8{1}, len(fusion)) // idle time there is before kernels of several ops alone
		cfg := Config{}
		var delivery func(TransferSpan) float64
		switch seed % 4 {
		case 0:
			cfg = fairConfig
			cfg.Memory = false
		case 1:
			occupySender(r, p.m)
			delivery = func(x TransferSpan) float64 { return float64(p.m.EndCosts(x.From, x.To).Delivery) }
		}
		s, err := New(p.g, p.m, cost, cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := &plan.Plan{Decision: plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion}}
		got := make([]float64, p.g.NumOps())
		s.Critical(x, make([]float64, p.m.NumDevices()), make([]bool, p.g.NumOps()), got)
		res, err := s.Run(x, Options{Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range idleByTrace(p.g, res.Trace, delivery) {
			if math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("seed %d: %g s idle before op %d, %g by the trace", seed, got[i], i, want)
			}
			if want > 0 {
				some++
			}
		}
	}
	if some < 100 {
		t.Errorf("%d ops with idle time before them, too few for a test", some)
	}
}

// A timeline says of every op what a trace and the critical path say.
func TestTimeline(t *testing.T) {
	waits := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 37))
		p, cost, fusion := fusedProblem(r, 80, 5)
		if seed%2 == 0 {
			fusion = nil
		}
		s, err := New(p.g, p.m, cost, Config{})
		if err != nil {
			t.Fatal(err)
		}
		n := p.g.NumOps()
		x := &plan.Plan{Decision: plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion}}
		on, ready, start := make([]bool, n), make([]float64, n), make([]float64, n)
		length := s.Timeline(x, on, ready, start)
		critical, idle := make([]bool, n), make([]float64, n)
		s.Critical(x, make([]float64, p.m.NumDevices()), critical, idle)
		res, err := s.Run(x, Options{Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		if length != float64(res.Makespan) || !slices.Equal(on, critical) {
			t.Fatalf("seed %d: a step of %g s, %v on the critical path; want %g, %v", seed, length, on, float64(res.Makespan), critical)
		}
		for _, k := range res.Trace.Ops {
			for _, i := range append([]graph.OpID{k.Op}, k.Fused...) {
				if start[i] != float64(k.Start) || ready[i] > start[i] {
					t.Fatalf("seed %d: op %d is ready at %g and starts at %g, by the trace at %g", seed, i, ready[i], start[i], float64(k.Start))
				}
				if fusion == nil && ready[i] == start[i] && idle[i] > 1e-9 {
					t.Fatalf("seed %d: op %d starts as its inputs come, and its device is idle for %g s after that", seed, i, idle[i])
				}
				if ready[i] < start[i] {
					waits++
				}
			}
		}
	}
	if waits < 1000 {
		t.Errorf("%d ops waited for their device, too few for a test", waits)
	}
}

// Fuse says of a plan what Kernels says of it after an evaluation, and the
// evaluations behind it come to what they would.
func TestFuse(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 32))
		p, cost, fusion := fusedProblem(r, 40, 5)
		s, err := New(p.g, p.m, cost, Default())
		if err != nil {
			t.Fatal(err)
		}
		clean, err := New(p.g, p.m, cost, Default())
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			kernel, takes := s.Fuse(p.device, fusion)
			want := clean.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
			k, x := clean.Kernels()
			if !slices.Equal(kernel, k) || !slices.Equal(takes, x) {
				t.Fatalf("seed %d: kernels %v that take %v, evaluated %v and %v", seed, kernel, takes, k, x)
			}
			s.Fuse(p.device, randomFusion(r, p.g.NumOps()))
			if got := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion}); got != want {
				t.Fatalf("seed %d: %v behind Fuse, %v without", seed, got, want)
			}
			fusion = randomFusion(r, p.g.NumOps())
		}
	}
}
