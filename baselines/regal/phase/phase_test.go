package phase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func stream(k uint64) *rand.Rand { return rand.New(rand.NewPCG(21, k)) }

// tiny returns a random problem of n ops on two devices.
func tiny(r *rand.Rand, n int, control bool) *sched.Problem {
	s := sched.Spec{Name: "tiny", Time: make([]float64, n), Machine: sched.TwoDevices()}
	for i := range s.Time {
		s.Time[i] = float64(r.IntN(8))
		for v := i + 1; v < n; v++ {
			if r.IntN(3) == 0 {
				s.Tensors = append(s.Tensors, sched.Tensor{Producer: int32(i), Consumers: []int32{int32(v)}, Control: control && r.IntN(2) == 0})
			}
		}
	}
	p, err := sched.New(s)
	if err != nil {
		panic(err)
	}
	return p
}

// optimum tries every placement and every order of ops and transfers.
func optimum(t *testing.T, p *sched.Problem) float64 {
	e := sched.NewEvaluator(p, sched.RunTime)
	best := math.Inf(1)
	for mask := range 1 << p.N() {
		device := make([]uint8, p.N())
		for i := range device {
			device[i] = uint8(mask >> i & 1)
		}
		needs := map[int32][]int32{} // item -> items before it
		for i := range int32(p.N()) {
			needs[i] = nil
		}
		for i := range int32(p.N()) {
			for _, x := range p.Inputs(i) {
				from := p.Producer(x)
				if device[from] != device[i] {
					move := p.Transfer(x, int(device[i]))
					needs[move] = []int32{from}
					from = move
				}
				needs[i] = append(needs[i], from)
			}
		}
		var items []int32
		for x := range needs {
			items = append(items, x)
		}
		slices.Sort(items)
		done := map[int32]bool{}
		var order []int32
		var walk func()
		walk = func() {
			if len(order) == len(items) {
				s, err := e.Schedule(device, order)
				if err != nil {
					t.Fatal(err)
				}
				best = min(best, s.Time)
				return
			}
			for _, x := range items {
				if done[x] || slices.ContainsFunc(needs[x], func(y int32) bool { return !done[y] }) {
					continue
				}
				done[x] = true
				order = append(order, x)
				walk()
				order = order[:len(order)-1]
				done[x] = false
			}
		}
		walk()
	}
	return best
}

// Phases say all there is to say: on graphs of data alone the solver finds what
// trying every schedule finds. With control dependencies it is a schedule too,
// and its bound stays one.
func TestOptimumOfTinyGraphs(t *testing.T) {
	for k := range uint64(40) {
		r := stream(k)
		p := tiny(r, 3+int(k%3), k%4 == 3)
		want := optimum(t, p)
		c := Quick()
		c.Moves = 3000
		got, err := Solve(context.Background(), p, c, r)
		if err != nil {
			t.Fatal(err)
		}
		if k%4 != 3 && got.Score.Time != want || got.Score.Time < want || got.Bound > want {
			t.Errorf("graph %d: %g with bound %g, the optimum is %g", k, got.Score.Time, got.Bound, want)
		}
	}
}

// After any number of moves, loads and cost are those of the assignment, and every
// op is within its window.
func TestMovesKeepState(t *testing.T) {
	for k := range uint64(6) {
		r := stream(100 + k)
		c := synth.Default()
		c.Machine.Devices = 2 + int(k%2)
		x := newInstance(c.Generate(r))
		s := starts(x, 1, 150, r)
		best := newState(x)
		best.copyFrom(s)
		s.anneal(best, 20000, 80, 1, 0, r)
		for name, o := range map[string]*state{"walk": s, "best": best} {
			cost, load := o.cost, slices.Clone(o.load)
			o.recount()
			if math.Abs(cost-o.cost) > 1e-6 {
				t.Errorf("%s: cost %g, counted anew %g", name, cost, o.cost)
			}
			for i := range load {
				if math.Abs(load[i]-o.load[i]) > 1e-6 {
					t.Fatalf("%s: load %d is %g, counted anew %g", name, i, load[i], o.load[i])
				}
			}
			for v := range x.ops {
				if !o.fits(int32(v)) {
					t.Fatalf("%s: op %d is outside its window", name, v)
				}
			}
		}
		if best.cost > s.cost {
			t.Errorf("best %g is worse than the walk's end %g", best.cost, s.cost)
		}
	}
}

func TestSynthetic(t *testing.T) {
	for k := range uint64(3) {
		p := synth.Default().Generate(stream(200 + k))
		quick, err := Solve(context.Background(), p, Quick(), stream(k))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Solve(context.Background(), p, Quick(), stream(k))
		if !slices.Equal(quick.Sequence, again.Sequence) || !slices.Equal(quick.Device, again.Device) {
			t.Error("the same stream gives another schedule")
		}
		if gap(quick) < 0 || gap(quick) > 0.02 {
			t.Errorf("graph %d: gap %.4f", k, gap(quick))
		}
	}
}

func TestFromPhases(t *testing.T) {
	p := synth.Default().Generate(stream(300))
	got, err := Solve(context.Background(), p, Quick(), stream(1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := FromPhases(p, got.Device, got.PhaseOf)
	if err != nil || again.Score != got.Score || again.Phases != got.Phases {
		t.Errorf("%+v, %v; want %+v", again.Score, err, got.Score)
	}
	if out := Outside(p); !out[0] || !out[p.N()-1] || slices.Contains(out[1:p.N()-1], true) && p.Time()[slices.Index(out[1:p.N()-1], true)+1] > 0 {
		t.Error("source and sink alone are outside the phases")
	}
	flat := make([]int32, p.N())
	if _, err := FromPhases(p, got.Device, flat); err == nil {
		t.Error("edges between devices within one phase passed")
	}
}

func TestEdges(t *testing.T) {
	m := sched.TwoDevices()
	one, err := sched.New(sched.Spec{Name: "idle", Time: []float64{0, 0}, Machine: m, Tensors: []sched.Tensor{{Producer: 0, Consumers: []int32{1}, Size: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Solve(context.Background(), one, Quick(), stream(1))
	if err != nil || got.Score.Time != 0 || gap(got) != 0 {
		t.Errorf("ops without time: %+v, %v", got, err)
	}
	m.Bandwidth = 1
	slow, err := one.With(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Solve(context.Background(), slow, Quick(), stream(1)); !errors.Is(err, errBandwidth) {
		t.Errorf("transfers that take time: %v", err)
	}
	for _, c := range []Config{{}, {Starts: 1, Hot: 1, Cold: 2}, {Starts: 1, Rounds: -1, Hot: 1, Cold: 1}} {
		if c.validate() == nil {
			t.Errorf("%+v passed", c)
		}
	}
	if Default().validate() != nil || Quick().validate() != nil {
		t.Error("the defaults are not valid")
	}
}

// BenchmarkSolve is one graph of 127 ops, quick and thorough; moves/s is the
// annealer's rate.
func BenchmarkSolve(b *testing.B) {
	s := synth.Default()
	s.MinOps, s.MaxOps = 125, 125
	p := s.Generate(stream(1))
	for name, c := range map[string]Config{"quick": Quick(), "default": Default()} {
		b.Run(name, func(b *testing.B) {
			moves := 0
			for b.Loop() {
				got, err := Solve(context.Background(), p, c, stream(2))
				if err != nil {
					b.Fatal(err)
				}
				moves += got.Moves
			}
			b.ReportMetric(float64(moves)/b.Elapsed().Seconds(), "moves/s")
		})
	}
}

func Example() {
	// Two chains, and an op that reads the ends of both.
	p, err := sched.New(sched.Spec{
		Name: "two chains", Time: []float64{3, 4, 5, 2, 1}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{
			{Producer: 0, Consumers: []int32{1}, Size: 8}, {Producer: 2, Consumers: []int32{3}, Size: 8},
			{Producer: 1, Consumers: []int32{4}, Size: 8}, {Producer: 3, Consumers: []int32{4}, Size: 8},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := Solve(context.Background(), p, Default(), rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Score.Time, r.Bound, r.Phases)
	// Output: 8 8 2
}

// gap returns how far the run time is above the bound, as a share of the bound.
func gap(r *Result) float64 {
	if r.Bound == 0 {
		return 0
	}
	return r.Score.Time/r.Bound - 1
}
