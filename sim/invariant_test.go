package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graph"
	"placer/plan"
	"placer/units"
)

// A faster op can make the step longer. Five ops on two devices, first ready
// first served: when op 1 takes 5 s instead of 6, op 4 is ready before op 2 and
// delays it, and with it the long op 3. The case also pins the order of the queue.
func TestFasterOpLongerStep(t *testing.T) {
	b := graph.NewBuilder("five")
	op := func(k int, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: fmt.Sprint("op", k), Kind: "Add"}, in, graph.Tensor{}), 0)
	}
	t0 := op(0)
	t1 := op(1)
	op(3, op(2, t0)) // ids 2 and 3
	op(4, t1)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	const latency = 1.0 / 1024
	device := []uint8{1, 0, 1, 0, 1}
	for _, tt := range []struct {
		op1  float64
		want string
	}{
		{6, "op0 on 1 at 0, op1 on 0 at 0, op2 on 1 at 6, op4 on 1 at 9, op3 on 0 at 9.0009765625; 16.0009765625 s"},
		{5, "op0 on 1 at 0, op1 on 0 at 0, op4 on 1 at 6, op2 on 1 at 7, op3 on 0 at 10.0009765625; 17.0009765625 s"},
	} {
		column := []float64{6, tt.op1, 3, 7, 1}
		s, err := New(g, pairMachine(2, latency, 1), costTable{column, column}, Default())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(&plan.Plan{Decision: plan.Decision{Device: device}}, Options{Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		spans := slices.Clone(r.Trace.Ops)
		slices.SortStableFunc(spans, func(a, b OpSpan) int {
			if a.Start == b.Start {
				return int(a.Op - b.Op)
			}
			return 0
		})
		got := ""
		for _, x := range spans {
			got += fmt.Sprintf("%s on %d at %v, ", g.Op(x.Op).Name, x.Device, float64(x.Start))
		}
		got = fmt.Sprintf("%s; %v s", got[:len(got)-2], float64(r.Makespan))
		if got != tt.want {
			t.Errorf("op 1 of %v s:\n got %s\nwant %s", tt.op1, got, tt.want)
		}
	}
}

// pairProblem is a random case on equal devices with a link for every pair, where
// nothing depends on how devices are numbered.
func pairProblem(r *rand.Rand) *problem {
	p := randomProblem(r, 40, 5)
	p.m = pairMachine(p.m.NumDevices(), 1, 2)
	for d := range p.cost {
		p.cost[d] = p.cost[0]
	}
	return p
}

func TestRelabellingEqualDevicesChangesNothing(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 8))
		p := pairProblem(r)
		s := newSimulatorFor(t, p, Default())
		want := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		peaks := peaksOf(s)
		to := r.Perm(p.m.NumDevices())
		for i, d := range p.device {
			p.device[i] = uint8(to[d])
		}
		if got := s.Evaluate(plan.Decision{Device: p.device, Priority: p.priority}); got != want {
			t.Fatalf("seed %d: %v after relabelling, %v before", seed, got, want)
		}
		for d, peak := range peaks {
			if got := peaksOf(s)[to[d]]; got != peak {
				t.Fatalf("seed %d: device %d peaked at %d, as device %d at %d", seed, d, peak, to[d], got)
			}
		}
	}
}

func peaksOf(s *Simulator) (peaks []int64) {
	for d := range s.devs {
		peaks = append(peaks, s.devs[d].peak)
	}
	return peaks
}

// renumbered returns g with its ops added in another topological order, and where
// each op went.
func renumbered(r *rand.Rand, g *graph.Graph) (*graph.Graph, []graph.OpID) {
	n := g.NumOps()
	b := graph.NewBuilder(g.Name())
	to := make([]graph.OpID, n)
	tensor := make([]graph.TensorID, g.NumTensors())
	done := make([]bool, n)
	for range n {
		var can []graph.OpID
		for i := range n {
			ok := !done[i]
			for _, t := range g.Inputs(graph.OpID(i)) {
				ok = ok && done[g.Tensor(t).Producer]
			}
			for _, c := range g.Control(graph.OpID(i)) {
				ok = ok && done[c]
			}
			if ok {
				can = append(can, graph.OpID(i))
			}
		}
		i := can[r.IntN(len(can))]
		done[i] = true
		var in []graph.TensorID
		for _, t := range g.Inputs(i) {
			in = append(in, tensor[t])
		}
		var outs []graph.Tensor
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			outs = append(outs, *g.Tensor(t))
		}
		to[i] = b.Op(*g.Op(i), in, outs...)
		for t := first; t < end; t++ {
			tensor[t] = b.Output(to[i], int(t-first))
		}
		for _, c := range g.Control(i) {
			b.Control(to[c], to[i])
		}
	}
	h, err := b.Build()
	if err != nil {
		panic(err)
	}
	return h, to
}

// With priorities there are no ties between ops, so their numbers do not matter.
func TestRenumberingOpsWithPrioritiesChangesNothing(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 9))
		p := pairProblem(r)
		p.priority = randomPriority(r, p.g.NumOps())
		want := newSimulatorFor(t, p, Default()).Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
		h, to := renumbered(r, p.g)
		q := &problem{g: h, m: p.m, device: make([]uint8, h.NumOps()), priority: make([]int32, h.NumOps())}
		column := make([]float64, h.NumOps())
		for i, k := range to {
			q.device[k], q.priority[k], column[k] = p.device[i], p.priority[i], p.cost[0][i]
		}
		for range p.cost {
			q.cost = append(q.cost, column)
		}
		if got := newSimulatorFor(t, q, Default()).Evaluate(plan.Decision{Device: q.device, Priority: q.priority}); got != want {
			t.Fatalf("seed %d: %v after renumbering, %v before", seed, got, want)
		}
	}
}

func TestDoublingCostsDoublesTime(t *testing.T) {
	for seed := range uint64(500) {
		for _, cfg := range []Config{Default(), fairConfig, aloneConfig} {
			r := rand.New(rand.NewPCG(seed, 10))
			p := randomProblem(r, 40, 5)
			generic(r, p)
			once := newSimulatorFor(t, p, cfg).Evaluate(plan.Decision{Device: p.device, Priority: p.priority})
			for d := range p.cost {
				for i := range p.cost[d] {
					p.cost[d][i] *= 2
				}
			}
			for l := range p.m.Links {
				p.m.Links[l].Latency *= 2
				p.m.Links[l].Bandwidth /= 2
			}
			if twice := newSimulatorFor(t, p, cfg).Evaluate(plan.Decision{Device: p.device, Priority: p.priority}); twice.Value != 2*once.Value || twice.Overflow != once.Overflow {
				t.Fatalf("seed %d, %v: %v, doubled %v", seed, cfg.Contention, once, twice)
			}
		}
	}
}

// The makespan lies between the busiest device and everything one by one, and
// what is reserved for the whole step never leaves.
func TestMakespanIsWithinTrivialBounds(t *testing.T) {
	for seed := range uint64(1000) {
		for _, cfg := range []Config{Default(), fairConfig, aloneConfig} {
			p, r, _ := runRandom(t, seed, cfg)
			serial := units.Seconds(0)
			resident := make([]units.Bytes, p.m.NumDevices())
			for i, d := range p.device {
				serial += p.cost.OpSeconds(graph.OpID(i), int(d))
				resident[d] += p.g.Op(graph.OpID(i)).Resident
			}
			for _, x := range r.Trace.Transfers {
				serial += p.m.TransferSeconds(x.From, x.To, x.Bytes)
			}
			for d, busy := range r.Busy {
				if busy > r.Makespan || r.PeakBytes[d] < resident[d] {
					t.Fatalf("seed %d: device %d busy for %v of %v, %v resident, peak %v", seed, d, busy, r.Makespan, resident[d], r.PeakBytes[d])
				}
				if end := r.Trace.Memory[d]; len(end) > 0 && end[len(end)-1].Bytes != resident[d] {
					t.Fatalf("seed %d: device %d holds %v at the end, %v is resident", seed, d, end[len(end)-1].Bytes, resident[d])
				}
			}
			// Rounding: fair sharing divides.
			if float64(r.Makespan) > float64(serial)*(1+1e-12) {
				t.Fatalf("seed %d: %v, one by one %v", seed, r.Makespan, serial)
			}
		}
	}
}

func TestCriticalPathPriority(t *testing.T) {
	b := graph.NewBuilder("levels")
	a := b.Op(graph.Op{Name: "a", Kind: "Add"}, nil, graph.Tensor{})
	c := b.Op(graph.Op{Name: "b", Kind: "Add"}, nil, graph.Tensor{})
	d := b.Op(graph.Op{Name: "c", Kind: "Add"}, []graph.TensorID{b.Output(a, 0)})
	b.Op(graph.Op{Name: "d", Kind: "Add"}, []graph.TensorID{b.Output(c, 0)})
	e := b.Op(graph.Op{Name: "e", Kind: "Add"}, nil)
	b.Control(d, e)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	seconds := []float64{1, 2, 3, 5, 1} // levels: a 1+3+1, b 2+5, c 3+1, d 5, e 1
	if got := BottomLevels(g, seconds); !slices.Equal(got, []float64{5, 7, 4, 5, 1}) {
		t.Errorf("bottom levels %v", got)
	}
	if got := CriticalPathPriority(g, seconds); !slices.Equal(got, []int32{1, 0, 3, 2, 4}) {
		t.Errorf("priority %v", got)
	}
	if got := RankByKey([]string{"b", "a", "b"}); !slices.Equal(got, []int32{1, 0, 2}) {
		t.Errorf("ranks %v", got)
	}
}

func TestEvaluatePanicsOnMisuse(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(5, 5)), 10, 3)
	n := p.g.NumOps()
	for name, f := range map[string]func(s *Simulator){
		"short placement":  func(s *Simulator) { s.Evaluate(plan.Decision{Device: p.device[:n-1]}) },
		"short priority":   func(s *Simulator) { s.Evaluate(plan.Decision{Device: p.device, Priority: make([]int32, n-1)}) },
		"equal priorities": func(s *Simulator) { s.Evaluate(plan.Decision{Device: p.device, Priority: make([]int32, n)}) },
		"no such device":   func(s *Simulator) { s.Evaluate(plan.Decision{Device: slices.Repeat([]uint8{63}, n)}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(newSimulatorFor(t, p, Default()))
		}()
	}
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{Contention: Uncontended + 1}).Validate(); err == nil {
		t.Error("a contention model that does not exist is valid")
	}
	p := randomProblem(rand.New(rand.NewPCG(5, 5)), 10, 3)
	if _, err := New(p.g, p.m, p.cost, Config{Contention: Uncontended + 1}); err == nil {
		t.Error("New accepts a contention model that does not exist")
	}
	if FIFO.String() != "fifo" || FairShare.String() != "fair-share" || Uncontended.String() != "none" || Contention(9).String() != "contention(9)" {
		t.Error("names of the contention models")
	}
}
