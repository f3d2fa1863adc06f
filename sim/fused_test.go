package sim

import (
	"errors"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/plan"
	"placer/units"
)

// kernelCosts are costs whose kernels differ from the sum of their ops.
type kernelCosts struct {
	costTable
	parts [][]fuse.Parts // [D][N]
}

func (c kernelCosts) Parts(op graph.OpID, device int) fuse.Parts { return c.parts[device][op] }

var fusibleKinds = []graph.Kind{"Add", "Add", "Add", "Mul", "Sum", "MatMul", "Reshape", "Reshape", "Identity", "Shape", "Slice", "Placeholder", "Gather"}

// fusedProblem is a random case with kinds of all roles, and fusion priorities.
func fusedProblem(r *rand.Rand, maxOps, maxDevices int) (p *problem, cost kernelCosts, fusion []uint8) {
	p = &problem{m: randomMachine(r, 1+r.IntN(maxDevices))}
	p.g = randomGraphOf(r, 1+r.IntN(maxOps), func(op *graph.Op) {
		op.Kind = fusibleKinds[r.IntN(len(fusibleKinds))]
		op.Bytes = units.Bytes(r.IntN(20))
		if len(op.Name)%2 == 0 { // what writes a variable in place is fused as well
			op.Phase = graph.Update
		}
		if r.IntN(3) > 0 {
			op.Resident = 0
		}
	})
	n, d := p.g.NumOps(), p.m.NumDevices()
	p.cost = randomCosts(r, n, d)
	cost = kernelCosts{p.cost, make([][]fuse.Parts, d)}
	for k := range d {
		if k > 0 && &p.cost[k][0] == &p.cost[0][0] {
			cost.parts[k] = cost.parts[0]
			continue
		}
		cost.parts[k] = make([]fuse.Parts, n)
		for i := range cost.parts[k] {
			cost.parts[k][i] = fuse.Parts{Compute: units.Seconds(1+r.IntN(4)) / 4, PerByte: float64(r.IntN(4)) / 16, Launch: units.Seconds(1+r.IntN(4)) / 8}
		}
	}
	p.device = randomPlacement(r, p.g, d)
	if r.IntN(3) == 0 {
		clear(p.device)
	}
	if r.IntN(2) == 0 {
		p.priority = randomPriority(r, n)
	}
	return p, cost, randomFusion(r, n)
}

func randomFusion(r *rand.Rand, n int) []uint8 {
	fusion := make([]uint8, n)
	levels := 1 + r.IntN(4)
	for i := range fusion {
		fusion[i] = uint8(r.IntN(levels + 1))
	}
	return fusion
}

// Fused runs agree with the oracle exactly: step time and peaks, however often the
// decisions change.
func TestFusedAgainstOracle(t *testing.T) {
	kernels := 0
	for seed := range uint64(1000) {
		kernels += agreeFused(t, seed, false)
	}
	if kernels < 1500 {
		t.Errorf("%d ops were fused with another, too few for a test", kernels)
	}
}

// agreeFused returns how many ops were fused with another. Where sender is set,
// copies occupy the sender.
func agreeFused(t *testing.T, seed uint64, sender bool) (kernels int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 20))
	p, cost, fusion := fusedProblem(r, 40, 5)
	if sender {
		occupySender(r, p.m)
	}
	s, err := New(p.g, p.m, cost, Default())
	if err != nil {
		t.Fatal(err)
	}
	fuser := fuse.NewFuser(fuse.NewRules(p.g))
	for range 3 {
		head := fuser.Fuse(p.device, fusion)
		if err := fuse.Check(p.g, p.device, head); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, h := range head {
			if int(h) != i {
				kernels++
			}
		}
		want := runOracleFused(p.g, p.m, cost, p.device, p.priority, head, FIFO)
		got := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
		if got.Value != want.makespan {
			t.Fatalf("seed %d: %v s, oracle %v", seed, got.Value, want.makespan)
		}
		for d, peak := range peaksOf(s.fused.run) {
			if peak != want.peak[d] {
				t.Fatalf("seed %d: device %d peaks at %d, oracle %d", seed, d, peak, want.peak[d])
			}
		}
		switch r.IntN(3) {
		case 0:
			p.device = randomPlacement(r, p.g, p.m.NumDevices())
		case 1:
			fusion = randomFusion(r, p.g.NumOps())
		case 2:
			p.priority = randomPriority(r, p.g.NumOps())
		}
	}
	return kernels
}

// Fusing nothing changes nothing.
func TestFusingNothing(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 21))
		p, cost, fusion := fusedProblem(r, 40, 5)
		s, err := New(p.g, p.m, cost, Default())
		if err != nil {
			t.Fatal(err)
		}
		want := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		peaks := peaksOf(s)
		s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
		clear(fusion)
		for _, f := range [][]uint8{fusion, nil} {
			if got := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: f}); got != want {
				t.Fatalf("seed %d: %v with no op fused, %v without fusion", seed, got, want)
			}
		}
		s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
		for d, peak := range peaksOf(s.fused.run) {
			if peak != peaks[d] {
				t.Fatalf("seed %d: device %d peaks at %d with no op fused, at %d without fusion", seed, d, peak, peaks[d])
			}
		}
	}
}

func TestEvaluateFusedAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 22))
	p, cost, fusion := fusedProblem(r, 200, 4)
	s, err := New(p.g, p.m, cost, Default())
	if err != nil {
		t.Fatal(err)
	}
	other := randomFusion(r, p.g.NumOps())
	s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
	if n := testing.AllocsPerRun(20, func() {
		s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: other})
		s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Run says of a fused plan what EvaluateFused does, and its critical path has no
// gap.
func TestRunOfFusedPlan(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 23))
		p, cost, fusion := fusedProblem(r, 40, 5)
		cfg := Default()
		if seed%4 == 0 {
			cfg = fairConfig
		}
		s, err := New(p.g, p.m, cost, cfg)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
		peaks := peaksOf(s.fused.run)
		res, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion}}, Options{Trace: true})
		var over *Infeasible
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
		if float64(res.Makespan) != want.Value || (err == nil) != want.Feasible() {
			t.Fatalf("seed %d: Run says %v, %v, EvaluateFused %v", seed, res.Makespan, err, want)
		}
		for d, peak := range peaks {
			if int64(res.PeakBytes[d]) != peak {
				t.Fatalf("seed %d: Run says that device %d peaks at %d, EvaluateFused %d", seed, d, res.PeakBytes[d], peak)
			}
		}
		at, ops := units.Seconds(0), 0
		for _, st := range res.CriticalPath {
			if st.Start != at {
				t.Fatalf("seed %d: a step of the critical path starts at %v, the one before ends at %v", seed, st.Start, at)
			}
			at = st.End
		}
		for _, x := range res.Trace.Ops {
			ops += 1 + len(x.Fused)
		}
		if at != res.Makespan || len(res.Trace.Ops) != res.Kernels || ops != p.g.NumOps() {
			t.Fatalf("seed %d: critical path ends at %v of %v; %d kernels, %d in the trace with %d of %d ops", seed, at, res.Makespan, res.Kernels, len(res.Trace.Ops), ops, p.g.NumOps())
		}
		again := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority, Fusion: fusion})
		if again != want {
			t.Fatalf("seed %d: %v after Run, %v before", seed, again, want)
		}
	}
}

func TestFusedBoundHoldsForEveryPlan(t *testing.T) {
	feasible, below := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 24))
		p, cost, _ := fusedProblem(r, 40, 5)
		// A kernel alone takes what its parts say, so that fusing helps often.
		for d := range p.cost {
			for i := range p.cost[d] {
				x := cost.parts[d][i]
				p.cost[d][i] = max(float64(x.Compute), float64(p.g.Op(graph.OpID(i)).Bytes)*x.PerByte) + float64(x.Launch)
			}
		}
		s, err := New(p.g, p.m, cost, Config{Memory: seed%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		b, without := s.FusedLowerBound(), s.LowerBound(t.Context())
		if b.Impossible != without.Impossible || float64(b.Seconds) > float64(without.Seconds)*(1+1e-9) { // sums in another order
			t.Fatalf("seed %d: bound with fusion %+v, without %+v", seed, b, without)
		}
		for k := range 20 {
			p.device = randomPlacement(r, p.g, p.m.NumDevices())
			if k%2 == 0 {
				only := uint8(r.IntN(p.m.NumDevices()))
				for i := range p.device {
					p.device[i] = only
				}
			}
			fusion := randomFusion(r, p.g.NumOps())
			if k%4 < 2 {
				for i := range fusion {
					fusion[i] = 1
				}
			}
			if score := s.Evaluate(plan.Decision{Device: p.device, Priority: randomPriority(r, p.g.NumOps()), Fusion: fusion}); score.Feasible() {
				feasible++
				holds(t, seed, b, score.Value, "a random plan")
				if score.Value < float64(without.Seconds) {
					below++
				}
			}
		}
	}
	if feasible < 5000 || below == 0 {
		t.Errorf("%d feasible plans, %d below the bound of plans without fusion: too few for a test", feasible, below)
	}
}
