package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/plan"
	"placer/units"
)

var fairConfig = Config{Memory: true, Contention: FairShare}

// generic replaces the small numbers of a random case by ones that hardly ever
// tie, since the two simulators round differently.
func generic(r *rand.Rand, p *problem) {
	for d := range p.cost {
		p.cost[d] = append([]float64(nil), p.cost[d]...)
		for i := range p.cost[d] {
			p.cost[d][i] *= 0.5 + r.Float64()
		}
	}
	for l := range p.m.Links {
		p.m.Links[l].Bandwidth *= units.BytesPerSecond(0.1 + r.Float64())
		p.m.Links[l].Latency *= units.Seconds(0.1 + r.Float64())
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestFairShareAgreesWithOracle(t *testing.T) {
	shared := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 6))
		p := randomProblem(r, 30, 5)
		generic(r, p)
		s := newSimulatorFor(t, p, fairConfig)
		s.record, s.starts = true, make([]float64, p.g.NumOps())
		score := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		want := runOracle(p.g, p.m, p.cost, p.device, p.priority, FairShare)
		if !near(score.Value, want.makespan) {
			t.Fatalf("seed %d: %v s, oracle %v s", seed, score.Value, want.makespan)
		}
		for i := range s.starts {
			if !near(s.starts[i], want.start[i]) {
				t.Fatalf("seed %d: op %d starts at %v, oracle %v", seed, i, s.starts[i], want.start[i])
			}
		}
		for k, x := range s.transfers {
			y := want.transfers[k]
			if !near(x.start, y.start) || !near(x.end, y.end) {
				t.Fatalf("seed %d: transfer %d from %v to %v, oracle %v to %v", seed, k, x.start, x.end, y.start, y.end)
			}
			if alone := s.routes[s.sender(&x)*s.d+x.dst()].seconds(x.size); x.end-x.start > alone*(1+1e-9) {
				shared++
			}
		}
		for d, peak := range want.peak {
			if s.devs[d].peak != peak {
				t.Fatalf("seed %d: device %d peaks at %d, oracle %d", seed, d, s.devs[d].peak, peak)
			}
		}
		if again := s.Clone().Evaluate(plan.Decision{Device: p.device, Priority: p.priority}); again != score {
			t.Fatalf("seed %d: a clone says %v, not %v", seed, again, score)
		}
	}
	if shared < 3000 {
		t.Errorf("%d transfers shared a link, too few for a test", shared)
	}
}

// Outputs of 8 B and 4 B leave at once over a bus of 2 B/s and 1 s; each is
// followed by 1 s of work.
func TestFairShareByHand(t *testing.T) {
	b := graph.NewBuilder("hand")
	a := b.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{Bytes: 8}, graph.Tensor{Bytes: 4})
	b.Op(graph.Op{Name: "b", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)})
	b.Op(graph.Op{Name: "c", Kind: "Add"}, []graph.TensorID{b.Output(a, 1)})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := pairMachine(3, 1, 2)
	m.Links = m.Links[:1]
	for s := range 3 {
		for e := range 3 {
			if s != e {
				m.Routes[s*3+e] = []int32{0}
			}
		}
	}
	cost := costTable{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}
	device := []uint8{0, 1, 2}
	// Both wait until 2, flow at 1 B/s until 6, when the second has come; the first
	// sends its other 4 B at 2 B/s until 8 and runs until 9.
	s, err := New(g, m, cost, fairConfig)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: device}}, Options{Trace: true})
	if err != nil || r.Makespan != 9 || r.Trace.Transfers[1].End != 6 || r.LinkBusy[0] != 7 || r.LinkBytes[0] != 12 {
		t.Fatalf("%+v, %v; want 9 s, a transfer that ends at 6 s and 12 B over a link busy for 7 s", r, err)
	}
	// In a queue: 1 to 6 and 6 to 9.
	q, err := New(g, m, cost, Default())
	if err != nil {
		t.Fatal(err)
	}
	if x := q.Evaluate(plan.Decision{Device: device}).Value; x != 10 {
		t.Fatalf("FIFO takes %v s, want 10", x)
	}
	if n := testing.AllocsPerRun(50, func() { s.Evaluate(plan.Decision{Device: device}) }); n != 0 {
		t.Fatalf("Evaluate allocates %v times", n)
	}
}

// In a chain no two transfers meet, so the models agree.
func TestFairShareWithoutContention(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := graph.NewBuilder("chain")
		var in []graph.TensorID
		for i := range 20 {
			id := b.Op(graph.Op{Name: fmt.Sprint(i), Kind: "Add"}, in, graph.Tensor{Bytes: units.Bytes(r.IntN(9))})
			in = []graph.TensorID{b.Output(id, 0)}
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := &problem{g: g, m: randomMachine(r, 4), cost: randomCosts(r, 20, 4), device: randomPlacement(r, g, 4)}
		generic(r, p)
		fair, fifo := newSimulatorFor(t, p, fairConfig), newSimulatorFor(t, p, Default())
		a, b2 := fair.Evaluate(plan.Decision{Device: p.device}), fifo.Evaluate(plan.Decision{Device: p.device})
		if !near(a.Value, b2.Value) || a.Overflow != b2.Overflow {
			t.Fatalf("seed %d: fair sharing %v, FIFO %v", seed, a, b2)
		}
	}
}
