package rivals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
)

func gpStream(k uint64) *rand.Rand { return rand.New(rand.NewPCG(31, k)) }

func cut(p *sched.Problem, device []uint8) (sum int64) {
	for t := range int32(p.T()) {
		for _, v := range p.Consumers(t) {
			if device[v] != device[p.Producer(t)] {
				sum += p.Size(t)
			}
		}
	}
	return sum
}

// No exchange of two ops of different devices makes the cut smaller: at least
// that is what the last pass of Kernighan and Lin leaves behind.
func TestPartition(t *testing.T) {
	for k := range uint64(8) {
		c := synth.Default()
		c.MaxOps, c.Machine.Devices = 60, 2+int(k%3)
		p := c.Generate(gpStream(k))
		device := bisect(p, gpStream(k))
		count := make([]int, p.D())
		for _, d := range device {
			count[d]++
		}
		if slices.Max(count)-slices.Min(count) > 1 {
			t.Errorf("graph %d: %v ops per device", k, count)
		}
		random := make([]uint8, p.N())
		for j, i := range gpStream(k).Perm(p.N()) {
			random[i] = uint8(j % p.D())
		}
		if got, was := cut(p, device), cut(p, random); float64(got) > 0.8*float64(was) {
			t.Errorf("graph %d: cut %d, a random placement has %d", k, got, was)
		}
		if !slices.Equal(device, bisect(p, gpStream(k))) {
			t.Error("the same stream gives another partition")
		}
	}
}

// Two cliques joined by one thin edge are found.
func TestCliques(t *testing.T) {
	s := sched.Spec{Name: "cliques", Time: make([]float64, 12), Machine: sched.TwoDevices()}
	for i := range int32(12) {
		for v := i + 1; v < 12; v++ {
			if i/6 == v/6 {
				s.Tensors = append(s.Tensors, sched.Tensor{Producer: i, Consumers: []int32{v}, Size: 10})
			}
		}
	}
	s.Tensors = append(s.Tensors, sched.Tensor{Producer: 2, Consumers: []int32{8}, Size: 3})
	p, err := sched.New(s)
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(10) {
		if got := cut(p, bisect(p, gpStream(k))); got != 3 {
			t.Errorf("stream %d: cut %d, want 3", k, got)
		}
	}
}

func TestOrder(t *testing.T) {
	for k := range uint64(5) {
		p := synth.Default().Generate(gpStream(50 + k))
		at := make([]int, p.N())
		order := depthFirst(p)
		for place, i := range order {
			at[i] = place + 1
		}
		for i := range int32(p.N()) {
			for _, x := range p.Inputs(i) {
				if at[p.Producer(x)] == 0 || at[p.Producer(x)] >= at[i] {
					t.Fatalf("op %d comes before its input", i)
				}
			}
		}
	}
}

func Example_depthFirst() {
	p, err := sched.New(sched.Spec{
		Name: "two chains", Time: []float64{3, 4, 5, 2}, Machine: sched.TwoDevices(),
		Tensors: []sched.Tensor{{Producer: 0, Consumers: []int32{1}, Size: 8}, {Producer: 2, Consumers: []int32{3}, Size: 8}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	order := depthFirst(p)
	s := sched.NewEvaluator(p, sched.RunTime).Place(bisect(p, rand.New(rand.NewPCG(1, 1))), order)
	fmt.Println(order, s.Time)
	// Output: [2 3 0 1] 7
}
