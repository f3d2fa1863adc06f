package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// occupySender makes transfers of p's machine copies that occupy the sender.
func occupySender(r *rand.Rand, m *hw.Machine) {
	same := r.IntN(2) == 0
	var first hw.EndCosts
	for l := range m.Links {
		m.Links[l].EndCosts = hw.EndCosts{Occupies: hw.Sender, Delivery: units.Seconds(r.IntN(5)) / 4, Receive: units.Seconds(r.IntN(5)) / 4,
			ReceiveBandwidth: []units.BytesPerSecond{0, 1, 2, 4}[r.IntN(4)]}
		if l == 0 {
			first = m.Links[l].EndCosts
		} else if same {
			m.Links[l].EndCosts = first
		}
	}
}

func senderProblem(r *rand.Rand, maxOps, maxDevices int) *problem {
	p := randomProblem(r, maxOps, maxDevices)
	occupySender(r, p.m)
	return p
}

// Step, starts, peaks and copies agree with the oracle to the last bit.
func TestCopiesAgreeWithOracle(t *testing.T) {
	shared, waived, received := 0, 0, 0
	for seed := range uint64(2500) {
		r := rand.New(rand.NewPCG(seed, 40))
		ops := 20
		if seed%8 == 0 {
			ops = 60
		}
		p := senderProblem(r, ops, 5)
		s := newSimulatorFor(t, p, Default())
		s.record, s.starts = true, make([]float64, p.g.NumOps())
		for range 3 { // a simulator is used again and again
			score := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
			want := runOracle(p.g, p.m, p.cost, p.device, p.priority, FIFO)
			if score.Value != want.makespan || !slices.Equal(s.starts, want.start) {
				t.Fatalf("seed %d: %v s, ops at %v; oracle %v, %v", seed, score.Value, s.starts, want.makespan, want.start)
			}
			if !slices.Equal(peaksOf(s), want.peak) {
				t.Fatalf("seed %d: peaks %v, oracle %v", seed, peaksOf(s), want.peak)
			}
			if len(s.transfers) != len(want.transfers) {
				t.Fatalf("seed %d: %d transfers, oracle %d", seed, len(s.transfers), len(want.transfers))
			}
			for k, x := range s.transfers {
				y := want.transfers[k]
				msg := s.messages[x.message()]
				if x.start != y.start || x.end != y.end || s.sender(&x) != y.src || x.dst() != y.what.device || msg.tensor != int32(y.what.tensor) {
					t.Fatalf("seed %d: transfer %d is %+v of tensor %d, oracle %+v", seed, k, x, msg.tensor, y)
				}
				if k > 0 && s.transfers[k-1].message() == x.message() {
					shared++
				}
			}
			if s.sending != nil {
				for i, x := range want.longer {
					if s.sending.receipts[i] != x {
						t.Fatalf("seed %d: op %d spends %v s on receipts, oracle %v", seed, i, s.sending.receipts[i], x)
					}
					if x > 0 {
						received++
					}
				}
			}
			for i := range graph.OpID(p.g.NumOps()) {
				for _, c := range p.g.Control(i) {
					if p.device[c] != p.device[i] && s.starts[i] <= s.starts[c] {
						waived++
					}
				}
			}
			p.device = randomPlacement(r, p.g, p.m.NumDevices())
			if p.priority = nil; r.IntN(2) == 0 {
				p.priority = randomPriority(r, p.g.NumOps())
			}
		}
	}
	if shared < 1000 || waived < 1000 || received < 1000 {
		t.Errorf("%d copies for several devices, %d control dependencies that did not hold, %d receipts: too few for a test", shared, waived, received)
	}
}

func TestFusedCopiesAgreeWithOracle(t *testing.T) {
	fused := 0
	for seed := range uint64(1000) {
		fused += agreeFused(t, seed, true)
	}
	if fused < 1500 {
		t.Errorf("%d ops were fused with another, too few for a test", fused)
	}
}

// Run agrees with Evaluate, its critical path has no gap, and devices are busy
// with ops, receipts and copies.
func TestRunOfCopies(t *testing.T) {
	seen := map[bool]map[Reason]int{false: {}, true: {}}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 41))
		p := senderProblem(r, 40, 5)
		s := newSimulatorFor(t, p, Default())
		d := plan.Decision{Device: p.device, Priority: p.priority}
		if seed%2 == 0 {
			d.Fusion = randomFusion(r, p.g.NumOps())
		}
		want := s.Evaluate(d)
		res, err := s.Run(&plan.Plan{Decision: d}, Options{Trace: true})
		var over *Infeasible
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
		if float64(res.Makespan) != want.Value || (err == nil) != want.Feasible() {
			t.Fatalf("seed %d: Run says %v, %v, Evaluate %v", seed, res.Makespan, err, want)
		}
		at := units.Seconds(0)
		for k, st := range res.CriticalPath {
			if st.Start != at || (st.Reason == AtStart) != (k == 0) || st.End <= st.Start {
				t.Fatalf("seed %d: step %d %+v, the one before ends at %v", seed, k, st, at)
			}
			if st.Reason == ForLink || st.Transfer && st.Reason == ForDevice && !res.CriticalPath[k-1].Transfer {
				t.Fatalf("seed %d: step %d %+v cannot be", seed, k, st)
			}
			seen[st.Transfer][st.Reason]++
			at = st.End
		}
		if at != res.Makespan {
			t.Fatalf("seed %d: the path ends at %v of %v", seed, at, res.Makespan)
		}
		busy := make([]units.Seconds, p.m.NumDevices())
		for _, x := range res.Trace.Ops {
			busy[x.Device] += x.End - x.Start
			if x.Ready > x.Start {
				t.Fatalf("seed %d: %+v starts before it is ready", seed, x)
			}
		}
		copied := map[graph.TensorID]bool{}
		for _, x := range res.Trace.Transfers {
			if !copied[x.Tensor] {
				busy[x.From] += x.End - x.Start
			}
			copied[x.Tensor] = true
			for _, o := range res.Trace.Ops {
				if o.Device == x.From && o.Start < x.End && x.Start < o.End {
					t.Fatalf("seed %d: copy %+v while %+v runs", seed, x, o)
				}
			}
		}
		for d := range busy {
			if !near(float64(res.Busy[d]), float64(busy[d])) || res.Busy[d] > res.Makespan {
				t.Fatalf("seed %d: device %d is busy for %v of %v, trace %v", seed, d, res.Busy[d], res.Makespan, busy[d])
			}
		}
		idle, share := make([]float64, p.g.NumOps()), make([]float64, p.m.NumDevices())
		s.Critical(&plan.Plan{Decision: d}, share, make([]bool, p.g.NumOps()), idle)
		for i, x := range idle {
			if !(x >= 0 && x <= want.Value) {
				t.Fatalf("seed %d: op %d idles for %v of %v", seed, i, x, want.Value)
			}
		}
	}
	for _, x := range []struct {
		transfer bool
		reason   Reason
	}{{false, ForCompute}, {false, ForTransfer}, {false, ForDevice}, {true, ForCompute}, {true, ForDevice}} {
		if n := seen[x.transfer][x.reason]; n < 100 {
			t.Errorf("transfer %v, reason %q: %d times, too seldom for a test", x.transfer, x.reason, n)
		}
	}
}

func TestBoundHoldsWithCopies(t *testing.T) {
	feasible := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 42))
		p, cost, fusion := fusedProblem(r, 40, 5)
		occupySender(r, p.m)
		s, err := New(p.g, p.m, cost, Config{Memory: seed%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		b, fused := s.LowerBound(t.Context()), s.FusedLowerBound()
		for range 20 {
			d := plan.Decision{Device: randomPlacement(r, p.g, p.m.NumDevices()), Priority: randomPriority(r, p.g.NumOps())}
			if score := s.Evaluate(d); score.Feasible() {
				feasible++
				holds(t, seed, b, score.Value, "a random plan")
			}
			d.Fusion = fusion
			if score := s.Evaluate(d); score.Feasible() {
				holds(t, seed, fused, score.Value, "a random fused plan")
			}
		}
	}
	if feasible < 5000 {
		t.Errorf("%d feasible plans, too few for a test", feasible)
	}
}

func TestBoundHoldsForTheOptimumWithCopies(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 43))
		p := senderProblem(r, 5, 3)
		s := newSimulatorFor(t, p, Config{})
		if best, found := optimum(s); found {
			holds(t, seed, s.LowerBound(t.Context()), best, "the best plan")
		}
	}
}

func TestCopiesAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 44))
	p, cost, fusion := fusedProblem(r, 200, 4)
	occupySender(r, p.m)
	s, err := New(p.g, p.m, cost, Default())
	if err != nil {
		t.Fatal(err)
	}
	s.Evaluate(plan.Decision{Device: p.device, Fusion: fusion})
	if n := testing.AllocsPerRun(20, func() {
		s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		s.Evaluate(plan.Decision{Device: p.device, Fusion: fusion})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// By hand: a (1 s) makes x of 8 B and y of 4 B on device 0; b there reads nothing;
// on device 1 c reads x, d reads x and y. A copy takes 1 s + bytes / 2 B/s, delivery
// 1/2 s, a receipt 1/4 s + bytes / 4 B/s.
func TestCopiesByHand(t *testing.T) {
	g := graph.NewBuilder("hand")
	a := g.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{Bytes: 8}, graph.Tensor{Bytes: 4})
	b := g.Op(graph.Op{Name: "b", Kind: "Add"}, nil)
	g.Op(graph.Op{Name: "c", Kind: "Add"}, []graph.TensorID{g.Output(a, 0)})
	g.Op(graph.Op{Name: "d", Kind: "Add"}, []graph.TensorID{g.Output(a, 0), g.Output(a, 1)})
	e := g.Op(graph.Op{Name: "e", Kind: "Add"}, nil)
	g.Control(b, e) // on another device: holds nothing
	built, err := g.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := pairMachine(2, 1, 2)
	for l := range m.Links {
		m.Links[l].EndCosts = hw.EndCosts{Occupies: hw.Sender, Delivery: 0.5, Receive: 0.25, ReceiveBandwidth: 4}
	}
	column := []float64{1, 1, 1, 1, 1}
	s, err := New(built, m, costTable{column, column}, Default())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 1, 1, 1}, Priority: []int32{0, 1, 2, 3, 4}}}, Options{Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	// Copies of x and y: 1 to 6 and 6 to 9. c: 6.5 to 6.5 + 2.25 + 1 = 9.75. d reads x
	// like its own: 9.75 + 1.25 + 1.
	want := []OpSpan{{Op: 0, Device: 0, End: 1}, {Op: 4, Device: 1, End: 1}, {Op: 2, Device: 1, Ready: 6.5, Start: 6.5, End: 9.75},
		{Op: 1, Device: 0, Start: 9, End: 10}, {Op: 3, Device: 1, Ready: 9.5, Start: 9.75, End: 12}}
	if !slices.EqualFunc(r.Trace.Ops, want, func(a, b OpSpan) bool {
		return a.Op == b.Op && a.Device == b.Device && a.Ready == b.Ready && a.Start == b.Start && a.End == b.End
	}) {
		t.Errorf("%+v, want %+v", r.Trace.Ops, want)
	}
	if r.Makespan != 12 || r.Busy[0] != 10 || r.Busy[1] != 1+3.25+2.25 {
		t.Errorf("%v, busy %v", r.Makespan, r.Busy)
	}
}

func TestCopiesGoWithFIFO(t *testing.T) {
	p := senderProblem(rand.New(rand.NewPCG(5, 5)), 10, 3)
	for _, c := range []Contention{FairShare, Uncontended} {
		if _, err := New(p.g, p.m, p.cost, Config{Contention: c}); err == nil || !strings.Contains(err.Error(), "occupy the sender on machine random") {
			t.Errorf("%v: error %v", c, err)
		}
	}
}
