package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"placer/graph"
	"placer/plan"
	"placer/units"
)

func runRandom(t *testing.T, seed uint64, cfg Config) (*problem, *Result, *Infeasible) {
	t.Helper()
	p := randomProblem(rand.New(rand.NewPCG(seed, 2)), 40, 5)
	s := newSimulatorFor(t, p, cfg)
	r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: p.device, Priority: p.priority}}, Options{Trace: true})
	var bad *Infeasible
	if err != nil && !errors.As(err, &bad) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if score := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}); score.Value != float64(r.Makespan) || score.Feasible() != (bad == nil) {
		t.Fatalf("seed %d: Run says %v and %v, Evaluate %v", seed, r.Makespan, err, score)
	}
	return p, r, bad
}

func TestCriticalPathHasNoGap(t *testing.T) {
	seen := map[Reason]int{}
	for seed := range uint64(1500) {
		p, r, _ := runRandom(t, seed, Default())
		at, kind := units.Seconds(0), AtStart
		for k, st := range r.CriticalPath {
			if st.Start != at {
				t.Fatalf("seed %d: step %d starts at %v, the one before ends at %v", seed, k, st.Start, at)
			}
			if want := map[bool]units.Seconds{true: p.m.TransferSeconds(max(st.From, 0), st.Device, tensorBytes(p.g, st.Tensor)), false: p.cost.OpSeconds(st.Op, st.Device)}[st.Transfer]; st.End-st.Start != want {
				t.Fatalf("seed %d: step %d takes %v, want %v", seed, k, st.End-st.Start, want)
			}
			ok := st.Reason == AtStart && k == 0
			if k > 0 {
				before := r.CriticalPath[k-1]
				switch st.Reason {
				case ForCompute:
					ok = !before.Transfer && (st.Transfer && before.Op == st.Op && before.Device == st.From || !st.Transfer && before.Device == st.Device && before.Op < st.Op)
				case ForTransfer:
					ok = !st.Transfer && before.Transfer && before.Device == st.Device
				case ForDevice:
					ok = !st.Transfer && !before.Transfer && before.Device == st.Device
				case ForLink:
					ok = st.Transfer && before.Transfer && carries(p, before, st.Link) && carries(p, st, st.Link)
				}
			}
			if !ok {
				t.Fatalf("seed %d: step %d %+v after %v cannot be", seed, k, st, kind)
			}
			seen[st.Reason]++
			at, kind = st.End, st.Reason
		}
		if at != r.Makespan {
			t.Fatalf("seed %d: the path ends at %v of %v", seed, at, r.Makespan)
		}
	}
	for _, reason := range []Reason{AtStart, ForCompute, ForTransfer, ForDevice, ForLink} {
		if seen[reason] < 100 {
			t.Errorf("reason %q occurs %d times, too seldom for a test", reason, seen[reason])
		}
	}
}

func tensorBytes(g *graph.Graph, t graph.TensorID) units.Bytes {
	if t == NoTensor {
		return 0
	}
	return g.Tensor(t).Bytes
}

func carries(p *problem, st Step, link int) bool {
	for _, l := range p.m.Route(st.From, st.Device) {
		if int(l) == link {
			return true
		}
	}
	return false
}

func TestResultAgreesWithOracle(t *testing.T) {
	infeasible := 0
	for seed := range uint64(1500) {
		p, r, bad := runRandom(t, seed, Default())
		o := runOracle(p.g, p.m, p.cost, p.device, p.priority, FIFO)
		if r.Makespan != units.Seconds(o.makespan) {
			t.Fatalf("seed %d: makespan %v, oracle %v", seed, r.Makespan, o.makespan)
		}
		for d, peak := range o.peak {
			if int64(r.PeakBytes[d]) != peak {
				t.Fatalf("seed %d: device %d peaks at %d, oracle %d", seed, d, r.PeakBytes[d], peak)
			}
			var busy units.Seconds
			for i, e := range p.device {
				if int(e) == d {
					busy += p.cost.OpSeconds(graph.OpID(i), d)
				}
			}
			if r.Busy[d] != busy || r.Idle[d] != r.Makespan-busy {
				t.Fatalf("seed %d: device %d busy %v idle %v of %v, want busy %v", seed, d, r.Busy[d], r.Idle[d], r.Makespan, busy)
			}
			highest := units.Bytes(0)
			for _, x := range r.Trace.Memory[d] {
				highest = max(highest, x.Bytes)
			}
			if int64(highest) != peak {
				t.Fatalf("seed %d: device %d has samples up to %d, oracle %d", seed, d, highest, peak)
			}
		}
		carried, held := make([]int64, len(p.m.Links)), make([]float64, len(p.m.Links))
		for k, x := range o.transfers {
			for _, l := range p.m.Route(x.src, x.what.device) {
				carried[l] += x.bytes
				held[l] += x.end - x.start
			}
			if y := r.Trace.Transfers[k]; float64(y.Ready) != x.ready || float64(y.Start) != x.start || float64(y.End) != x.end || int64(y.Bytes) != x.bytes {
				t.Fatalf("seed %d: transfer %d is %+v, oracle %+v", seed, k, y, x)
			}
		}
		for l := range p.m.Links {
			if int64(r.LinkBytes[l]) != carried[l] || float64(r.LinkBusy[l]) != held[l] {
				t.Fatalf("seed %d: link %d carries %d B in %v, oracle %d B in %v s", seed, l, r.LinkBytes[l], r.LinkBusy[l], carried[l], held[l])
			}
		}
		for _, x := range r.Trace.Ops {
			if float64(x.Start) != o.start[x.Op] || x.Ready > x.Start {
				t.Fatalf("seed %d: %+v, oracle starts at %v", seed, x, o.start[x.Op])
			}
		}
		if bad == nil {
			continue
		}
		infeasible++
		if bad.Need != r.PeakBytes[bad.Device] || bad.Have != p.m.Devices[bad.Device].Memory || bad.Need <= bad.Have {
			t.Fatalf("seed %d: %+v with peaks %v", seed, bad, r.PeakBytes)
		}
		sum := units.Bytes(0)
		for k, x := range bad.Largest {
			if k > 0 && x.Bytes > bad.Largest[k-1].Bytes || x.From > bad.At || x.Until <= bad.At {
				t.Fatalf("seed %d: holding %d %+v is not live at %v or out of order", seed, k, x, bad.At)
			}
			sum += x.Bytes
		}
		if sum > bad.Need || len(bad.Largest) < listed && sum != bad.Need {
			t.Fatalf("seed %d: the largest holdings have %d B of %d B", seed, sum, bad.Need)
		}
	}
	if infeasible < 50 {
		t.Errorf("%d infeasible cases, too few for a test", infeasible)
	}
}

func TestRunRejectsInvalidPlans(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(5, 5)), 10, 3)
	s := newSimulatorFor(t, p, Default())
	if r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: []uint8{0}}}, Options{}); r != nil || err == nil {
		t.Fatalf("a plan of one op gives %v, %v", r, err)
	}
}

func TestNewRejectsImpossibleTimes(t *testing.T) {
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		p := randomProblem(rand.New(rand.NewPCG(5, 5)), 10, 3)
		p.cost[0] = append([]float64(nil), p.cost[0]...)
		p.cost[0][len(p.cost[0])-1] = bad
		if _, err := New(p.g, p.m, p.cost, Default()); err == nil {
			t.Errorf("an op of %v s is accepted", bad)
		}
	}
	r := rand.New(rand.NewPCG(6, 5))
	g, m := randomGraph(r, 10), randomMachine(r, 3)
	m.Links[0].Latency = units.Seconds(math.Inf(1))
	if _, err := New(g, m, randomCosts(r, 10, 3), Default()); err == nil {
		t.Error("a link of infinite latency is accepted")
	}
}
