package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"placer/baselines/regal/sched"
)

func problem(t testing.TB, s sched.Spec) *sched.Problem {
	t.Helper()
	p, err := sched.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// figure10 is the graph of the paper's example (A.9), as its table shows it: op 1
// makes A and B, 2 reads A and makes C, 3 reads B and makes D, 4 reads C and makes
// E, 5 reads D and E. Sizes are powers of ten, so that a sum names its tensors.
func figure10(t testing.TB) *sched.Problem {
	return problem(t, sched.Spec{
		Name: "figure 10", Time: []float64{1, 2, 5, 1, 1}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{
			{Producer: 0, Consumers: []int32{1}, Size: 1},     // A
			{Producer: 0, Consumers: []int32{2}, Size: 10},    // B
			{Producer: 1, Consumers: []int32{3}, Size: 100},   // C
			{Producer: 2, Consumers: []int32{4}, Size: 1000},  // D
			{Producer: 3, Consumers: []int32{4}, Size: 10000}, // E
		},
	})
}

// The schedule of A.9: run 1, transfer B, run 2, 3, 4, transfer D, run 5. Its
// fullest step is the last, with D and E on device 1. The transfer of B ends at 1,
// that of D waits for op 3, which ends at 6.
func TestFigure10(t *testing.T) {
	p := figure10(t)
	e := sched.NewEvaluator(p, sched.PeakMemory)
	s, err := e.Schedule([]uint8{0, 0, 1, 0, 0}, []int32{0, p.Transfer(1, 1), 1, 2, 3, p.Transfer(3, 0), 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := (sched.Score{Time: 7, Peak: 11000}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

// Data blocks its sender too; control makes its consumer alone wait. Op 0 (time 1,
// device 0) feeds op 1 on device 1, which is busy until 9 with op 2; op 3 (time 6)
// follows on device 0, after the transfer in the order.
func TestReading(t *testing.T) {
	for _, c := range []struct {
		name string
		x    sched.Tensor
		want float64
	}{
		{"data", sched.Tensor{Producer: 0, Consumers: []int32{1}, Size: 7}, 15},
		{"data of size zero", sched.Tensor{Producer: 0, Consumers: []int32{1}}, 15},
		{"control", sched.Tensor{Producer: 0, Consumers: []int32{1}, Control: true}, 11},
	} {
		p := problem(t, sched.Spec{Name: c.name, Time: []float64{1, 2, 9, 6}, Machine: sched.TwoDevices(), Tensors: []sched.Tensor{c.x}})
		s, err := sched.NewEvaluator(p, sched.RunTime).Schedule([]uint8{0, 1, 1, 0}, []int32{2, 0, p.Transfer(0, 1), 3, 1})
		if err != nil || s.Time != c.want {
			t.Errorf("%s: %g, %v; want %g", c.name, s.Time, err, c.want)
		}
	}
	// Control across devices still orders.
	p := problem(t, sched.Spec{Name: "late", Time: []float64{8, 2}, Machine: sched.TwoDevices(), Tensors: []sched.Tensor{{Producer: 0, Consumers: []int32{1}, Control: true}}})
	if s := sched.NewEvaluator(p, sched.RunTime).Place([]uint8{0, 1}, p.Order()); s.Time != 10 {
		t.Errorf("a control dependency on an op that ends at 8: %g, want 10", s.Time)
	}
}

func TestPinAndTies(t *testing.T) {
	p := figure10(t)
	e := sched.NewEvaluator(p, sched.RunTime)
	keys := make([]float32, p.Keys())
	for i := range p.N() {
		keys[2*i+1] = 1
	}
	e.Cost(keys)
	if !slices.Equal(e.Device(), []uint8{1, 1, 1, 1, 1}) || !slices.Equal(e.Sequence(), []int32{0, 1, 2, 3, 4}) {
		t.Errorf("equal priorities: %v on %v", e.Sequence(), e.Device())
	}
	e.Pin(2)
	e.Cost(keys)
	if !slices.Equal(e.Device(), []uint8{1, 1, 0, 1, 1}) {
		t.Errorf("pinned: %v", e.Device())
	}
}

// Infeasible schedules rank below all feasible ones, and less excess before more.
func TestCostOrder(t *testing.T) {
	m := sched.Machine{Devices: 2, Memory: 100}
	costs := []float64{
		sched.RunTime.Cost(m, sched.Score{Time: 3, Peak: 100}),
		sched.RunTime.Cost(m, sched.Score{Time: 1e12, Peak: 99}),
		sched.RunTime.Cost(m, sched.Score{Time: 1, Peak: 101}),
		sched.RunTime.Cost(m, sched.Score{Time: 0, Peak: 102}),
	}
	if !slices.IsSorted(costs) || costs[2] < sched.Infeasible {
		t.Errorf("costs %v", costs)
	}
}

func TestNewRefuses(t *testing.T) {
	two := sched.TwoDevices()
	for name, c := range map[string]struct {
		s    sched.Spec
		want string
	}{
		"empty":      {sched.Spec{Machine: two}, "has no ops"},
		"time":       {sched.Spec{Time: []float64{-1}, Machine: two}, "op 0: time -1"},
		"producer":   {sched.Spec{Time: []float64{1}, Machine: two, Tensors: []sched.Tensor{{Producer: 1}}}, "tensor 0: producer 1 of 1 ops"},
		"consumer":   {sched.Spec{Time: []float64{1}, Machine: two, Tensors: []sched.Tensor{{Consumers: []int32{4}}}}, "tensor 0: consumer 4"},
		"size":       {sched.Spec{Time: []float64{1}, Machine: two, Tensors: []sched.Tensor{{Size: 3, Control: true}}}, "tensor 0: size 3"},
		"devices":    {sched.Spec{Time: []float64{1}}, "0 devices"},
		"self cycle": {sched.Spec{Time: []float64{1}, Machine: two, Tensors: []sched.Tensor{{Consumers: []int32{0}}}}, "op 0 waits for itself"},
		"cycle": {sched.Spec{Time: []float64{1, 1, 1, 1}, Machine: two, Tensors: []sched.Tensor{
			{Producer: 0, Consumers: []int32{1}}, {Producer: 1, Consumers: []int32{2}}, {Producer: 2, Consumers: []int32{1, 3}}}}, "waits for itself"},
	} {
		if _, err := sched.New(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestScheduleRefuses(t *testing.T) {
	p := figure10(t)
	e := sched.NewEvaluator(p, sched.RunTime)
	b, d := p.Transfer(1, 1), p.Transfer(3, 0)
	device := []uint8{0, 0, 1, 0, 0}
	for name, c := range map[string]struct {
		sequence []int32
		want     string
	}{
		"short":           {[]int32{0, b, 1, 2, 3, d}, "6 items"},
		"twice":           {[]int32{0, b, 1, 1, 3, d, 4}, "item 1 comes twice"},
		"unknown":         {[]int32{0, b, 1, 99, 3, d, 4}, "item 99"},
		"early transfer":  {[]int32{b, 0, 1, 2, 3, d, 4}, "before op 0"},
		"before transfer": {[]int32{0, 2, b, 1, 3, d, 4}, "op 2 comes before item"},
		"not needed":      {[]int32{0, b, 1, 2, 3, p.Transfer(0, 1), 4}, "missing"},
	} {
		if _, err := e.Schedule(device, c.sequence); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := e.Schedule([]uint8{0, 0, 2, 0, 0}, nil); err == nil {
		t.Error("a device that is not there passed")
	}
}

func TestSpecRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		p := random(r)
		q := problem(t, p.Spec())
		keys := randomKeys(r, p)
		a, b := sched.NewEvaluator(p, sched.PeakMemory), sched.NewEvaluator(q, sched.PeakMemory)
		if a.Decode(keys) != b.Decode(keys) {
			t.Fatal("a problem of its own spec scores otherwise")
		}
	}
}

func TestEvaluatorAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	p := random(r)
	keys := randomKeys(r, p)
	for _, o := range []sched.Objective{sched.RunTime, sched.PeakMemory} {
		e := sched.NewEvaluator(p, o)
		if n := testing.AllocsPerRun(100, func() { e.Cost(keys) }); n != 0 {
			t.Errorf("%v: %g allocations a call", o, n)
		}
	}
}

func Example() {
	// Op 0 feeds 1 and 2, which can run side by side; 3 reads both.
	p, err := sched.New(sched.Spec{
		Name: "diamond", Time: []float64{1, 5, 4, 1}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{
			{Producer: 0, Consumers: []int32{1, 2}, Size: 8},
			{Producer: 1, Consumers: []int32{3}, Size: 2},
			{Producer: 2, Consumers: []int32{3}, Size: 2},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	e := sched.NewEvaluator(p, sched.PeakMemory)
	fmt.Printf("%+v\n", e.Place([]uint8{0, 0, 0, 0}, p.Order()))
	fmt.Printf("%+v\n", e.Place([]uint8{0, 0, 1, 0}, []int32{0, 1, 2, 3})) // the transfer to op 2 waits for op 1
	fmt.Printf("%+v\n", e.Place([]uint8{0, 0, 1, 0}, []int32{0, 2, 1, 3})) // it goes first
	fmt.Println(p.LowerBound(), p.MemoryBound())
	// Output:
	// {Time:11 Peak:12}
	// {Time:11 Peak:10}
	// {Time:7 Peak:10}
	// 7 10
}
