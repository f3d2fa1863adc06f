package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/plan"
	"placer/roofline"
	"placer/workloads"
)

// movesTold counts what became of random moves.
type movesTold struct {
	scored, stopped int // by the quick loop: to the end, and given up
	whole           int // by the simulator
	kernels         int // of the first, those with fusion
	overflows       int
}

// agreeMoves makes random moves of a random case and compares the score of each with
// that of a simulator that knows nothing of moves, bit for bit.
func (c *movesTold) agreeMoves(t *testing.T, seed uint64, moves int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 60))
	p, cost, fusion := fusedProblem(r, 40, 6)
	if r.IntN(2) == 0 {
		p = randomProblem(r, 40, 6)
		cost.costTable, cost.parts, fusion = p.cost, nil, nil
	}
	if r.IntN(8) == 0 && p.m.NumDevices() > 1 {
		p.m = pairMachine(9+r.IntN(8), 1, 2) // more than are scanned at once
		p.cost = randomCosts(r, p.g.NumOps(), p.m.NumDevices())
		cost.costTable, cost.parts, fusion = p.cost, nil, nil
	}
	if r.IntN(2) == 0 {
		for d := range p.cost { // sums that are rounded
			for i := range p.cost[d] {
				p.cost[d][i] *= 1 + r.Float64()/8
			}
		}
	}
	cfg := Config{Memory: r.IntN(4) > 0}
	switch r.IntN(8) {
	case 0:
		cfg.Contention = FairShare
	case 1:
		cfg.Contention = Uncontended
	case 2:
		occupySender(r, p.m)
	}
	if r.IntN(8) > 0 {
		p.priority = randomPriority(r, p.g.NumOps())
	}
	if r.IntN(2) == 0 {
		fusion = nil
	}
	if r.IntN(4) == 0 {
		for d := range p.m.Devices {
			p.m.Devices[d].Memory = 1 << 30
		}
	}
	var model CostModel = p.cost
	if cost.parts != nil {
		model = cost
	}
	s, err := New(p.g, p.m, model, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n, devices := p.g.NumOps(), p.m.NumDevices()
	now := plan.Decision{Device: slices.Clone(p.device), Priority: p.priority, Fusion: fusion}
	for i := range now.Device {
		now.Device[i] %= uint8(devices)
	}
	x := s.Moves().(*Incremental)
	x.Reset(now)
	best := inf
	for range moves {
		switch r.IntN(16) {
		case 0:
			now.Device = randomPlacement(r, p.g, devices)
			if now.Fusion != nil {
				now.Fusion = randomFusion(r, n)
			}
			x.Reset(now)
		case 1:
			if now.Priority != nil {
				now.Priority = randomPriority(r, n)
			}
			x.Reset(now)
		case 2, 3: // a little of everything
			now.Device[r.IntN(n)] = uint8(r.IntN(devices))
			if now.Fusion != nil && r.IntN(2) == 0 {
				now.Fusion[r.IntN(n)] = uint8(r.IntN(4))
			}
			if now.Priority != nil && r.IntN(2) == 0 {
				a, b := r.IntN(n), r.IntN(n)
				now.Priority[a], now.Priority[b] = now.Priority[b], now.Priority[a]
			}
			x.Reset(now)
		default:
			ops := make([]graph.OpID, 1+r.IntN(4))
			d := uint8(r.IntN(devices))
			for k := range ops {
				ops[k] = graph.OpID(r.IntN(n))
				now.Device[ops[k]] = d
			}
			x.Move(ops, d)
		}
		want := s.Evaluate(now)
		limit := []float64{inf, best, want.Value, want.Value * 0.9, best * 1.1}[r.IntN(5)]
		got, ok := x.Score(limit)
		switch {
		case ok && got != want:
			t.Fatalf("seed %d: %v within %v, the simulator says %v", seed, got, limit, want)
		case !ok && want.Value <= limit:
			t.Fatalf("seed %d: given up at %v for a step of %v", seed, limit, want)
		case !ok:
			c.stopped++
		case x.step == nil || cfg.Memory && !x.step.fits():
			c.whole++
		default:
			c.scored++
			if fusion != nil {
				c.kernels++
			}
		}
		if !want.Feasible() {
			c.overflows++
		}
		best = min(best, want.Value)
	}
}

func TestMovesAgreeWithSimulator(t *testing.T) {
	var c movesTold
	for seed := range uint64(400) {
		c.agreeMoves(t, seed, 10)
	}
	if min(c.scored, c.stopped, c.whole, c.overflows) < 300 || c.kernels < 150 {
		t.Errorf("%+v of 4000 moves: too few of some kind for a test", c)
	}
}

// agreeOnWorkload makes random moves of the cells of a built-in workload, and keeps
// those that make the step no longer.
func agreeOnWorkload(t *testing.T, name string, gpus, moves int, fused bool) {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(g, m, cost, Default())
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, s.OpSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 61))
	now := plan.Decision{Device: h.Blocks(s.OpSeconds(0), gpus), Priority: CriticalPathPriority(g, s.OpSeconds(0))}
	if fused {
		now.Fusion = slices.Repeat([]uint8{1}, g.NumOps())
	}
	best := s.Evaluate(now)
	x := s.Moves()
	x.Reset(now)
	taken, stopped := 0, 0
	for k := range moves {
		level := unit.Cell
		if k%8 == 0 {
			level = unit.Chain
		}
		units := h.Levels[level]
		before := slices.Clone(now.Device)
		ops, d := units.Ops[r.IntN(units.NumUnits())], uint8(r.IntN(gpus))
		for _, i := range ops {
			now.Device[i] = d
		}
		x.Move(ops, d)
		want := s.Evaluate(now)
		got, ok := x.Score(best.Value)
		if ok && got != want || !ok && want.Value <= best.Value {
			t.Fatalf("%s: move %d scores %v, %v; the simulator says %v", name, k, got, ok, want)
		}
		if !ok {
			stopped++
		}
		if !best.Better(want) {
			best = want
			taken++
			continue
		}
		for _, i := range ops {
			x.Move([]graph.OpID{i}, before[i])
		}
		now.Device = before
	}
	if stopped < moves/4 || taken == 0 {
		t.Errorf("%s: of %d moves %d were given up and %d taken", name, moves, stopped, taken)
	}
}

func TestMovesAgreeOnWorkload(t *testing.T) {
	agreeOnWorkload(t, "rnnlm2", 2, 60, false)
	agreeOnWorkload(t, "rnnlm2", 2, 60, true)
}

func TestMovesAllocateNothing(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(3, 1)), 60, 4)
	p.priority = randomPriority(rand.New(rand.NewPCG(3, 2)), p.g.NumOps())
	x := newSimulatorFor(t, p, Default()).Moves()
	x.Reset(plan.Decision{Device: p.device, Priority: p.priority})
	ops := []graph.OpID{0}
	d := uint8(0)
	if n := testing.AllocsPerRun(100, func() {
		d = (d + 1) % uint8(p.m.NumDevices())
		x.Move(ops, d)
		x.Score(inf)
	}); n > 0 {
		t.Errorf("%v allocations a move", n)
	}
}

// Times so small that the clock does not see them are not for the quick loop.
func TestMovesOfVanishingTimes(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(5, 1)), 40, 3)
	p.priority = randomPriority(rand.New(rand.NewPCG(5, 2)), p.g.NumOps())
	for d := range p.cost {
		p.cost[d][0] = 1e-18
	}
	s := newSimulatorFor(t, p, Default())
	x := s.Moves().(*Incremental)
	now := plan.Decision{Device: p.device, Priority: p.priority}
	x.Reset(now)
	if got, ok := x.Score(inf); x.step != nil || !ok || got != s.Evaluate(now) {
		t.Errorf("%v, %v by the quick loop %v, want %v", got, ok, x.step != nil, s.Evaluate(now))
	}
}
