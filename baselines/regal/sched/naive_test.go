package sched_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"placer/baselines/regal/sched"
)

// naive is the model again, without cleverness: sets of tensors per device,
// searched and summed at every step.
type naive struct {
	p      *sched.Problem
	device []uint8
}

// transfers returns what the placement needs, as item -> tensor, target.
func (o *naive) transfers() map[int32][2]int32 {
	m := map[int32][2]int32{}
	for t := range int32(o.p.T()) {
		for _, v := range o.p.Consumers(t) {
			if d := o.device[v]; d != o.device[o.p.Producer(t)] {
				m[o.p.Transfer(t, int(d))] = [2]int32{t, int32(d)}
			}
		}
	}
	return m
}

// decode returns the order of a chromosome by asking every item, at every step,
// whether it can run.
func (o *naive) decode(keys []float32) []int32 {
	p := o.p
	n, d := p.N(), p.D()
	o.device = make([]uint8, n)
	for i := range n {
		for k := range d {
			if keys[i*d+k] > keys[i*d+int(o.device[i])] {
				o.device[i] = uint8(k)
			}
		}
	}
	moves := o.transfers()
	items := []int32{}
	for x := range int32(p.Items()) {
		if _, ok := moves[x]; ok || int(x) < n {
			items = append(items, x)
		}
	}
	priority := func(x int32) int { return min(int(keys[n*d+int(x)]*(1<<24)), 1<<24-1) }
	done := map[int32]bool{}
	var order []int32
	for len(order) < len(items) {
		best := int32(-1)
		for _, x := range items {
			if done[x] || best >= 0 && priority(x) <= priority(best) {
				continue
			}
			can := true
			if m, ok := moves[x]; ok {
				can = done[p.Producer(m[0])]
			} else {
				for _, t := range p.Inputs(x) {
					from := p.Producer(t)
					if o.device[from] != o.device[x] {
						from = p.Transfer(t, int(o.device[x]))
					}
					can = can && done[from]
				}
			}
			if can {
				best = x
			}
		}
		done[best] = true
		order = append(order, best)
	}
	return order
}

// step runs the schedule and returns what it comes to.
func (o *naive) step(sequence []int32) sched.Score {
	p := o.p
	moves := o.transfers()
	clock := make([]float64, p.D())
	memory := make([]map[int32]bool, p.D())
	for d := range memory {
		memory[d] = map[int32]bool{}
	}
	ended := make([]float64, p.N())
	ran := map[int32]bool{}
	var s sched.Score
	for _, x := range sequence {
		if m, ok := moves[x]; ok {
			t, to, from := m[0], int(m[1]), int(o.device[p.Producer(m[0])])
			if !memory[from][t] {
				panic("a transfer of what is not there")
			}
			memory[to][t] = true
			if !p.Control(t) {
				at := max(clock[from], clock[to])
				if b := p.Machine().Bandwidth; b > 0 {
					at += float64(p.Size(t)) / b
				}
				clock[from], clock[to] = at, at
			}
		} else {
			d := int(o.device[x])
			at := clock[d]
			for _, t := range p.Inputs(x) {
				if !memory[d][t] {
					panic("an op without its input")
				}
				if p.Control(t) {
					at = max(at, ended[p.Producer(t)])
				}
			}
			clock[d] = at + p.Time()[x]
			ended[x] = clock[d]
			for t, end := p.Outputs(x); t < end; t++ {
				memory[d][t] = true
			}
		}
		ran[x] = true
		for d := range memory { // count, then drop what all its readers here have read
			sum := int64(0)
			for t := range memory[d] {
				sum += p.Size(t)
			}
			s.Peak = max(s.Peak, sum)
			for t := range memory[d] {
				left := false
				for _, v := range p.Consumers(t) {
					left = left || int(o.device[v]) == d && !ran[v]
				}
				for y, m := range moves {
					left = left || m[0] == t && int(o.device[p.Producer(t)]) == d && !ran[y]
				}
				if !left {
					delete(memory[d], t)
				}
			}
		}
	}
	s.Time = slices.Max(clock)
	return s
}

// random returns a problem of up to 14 ops.
func random(r *rand.Rand) *sched.Problem {
	n := 1 + r.IntN(14)
	s := sched.Spec{Name: "random", Time: make([]float64, n), Machine: sched.Machine{Devices: 1 + r.IntN(4)}}
	place := r.Perm(n) // op at each topological place
	for i := range s.Time {
		s.Time[i] = float64(r.IntN(6)) * 1.7
		if r.IntN(4) == 0 {
			s.Time[i] = r.Float64()
		}
	}
	for k, i := range place {
		for range r.IntN(4) {
			t := sched.Tensor{Producer: int32(i), Size: int64(r.IntN(50)), Control: r.IntN(3) == 0}
			if t.Control {
				t.Size = 0
			}
			for range r.IntN(4) {
				if k+1 < n {
					t.Consumers = append(t.Consumers, int32(place[k+1+r.IntN(n-k-1)]))
				}
			}
			s.Tensors = append(s.Tensors, t)
		}
	}
	if r.IntN(2) == 0 {
		s.Machine.Bandwidth = 0.3 + 20*r.Float64()
	}
	if r.IntN(2) == 0 {
		s.Machine.Memory = int64(20 + r.IntN(200))
	}
	p, err := sched.New(s)
	if err != nil {
		panic(err)
	}
	return p
}

func randomKeys(r *rand.Rand, p *sched.Problem) []float32 {
	keys := make([]float32, p.Keys())
	for i := range keys {
		keys[i] = r.Float32()
		if r.IntN(8) == 0 {
			keys[i] = float32(r.IntN(5)) / 4 // equal keys, and both ends
		}
	}
	return keys
}

// The evaluator and the naive model agree to the last bit, whatever the schedule.
func TestNaiveModelAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		p := random(r)
		e := sched.NewEvaluator(p, sched.PeakMemory)
		keys := randomKeys(r, p)
		got := e.Decode(keys)
		o := &naive{p: p}
		order := o.decode(keys)
		if !slices.Equal(order, e.Sequence()) || !slices.Equal(o.device, e.Device()) {
			t.Fatalf("decoded %v on %v, want %v on %v", e.Sequence(), e.Device(), order, o.device)
		}
		if want := o.step(order); got != want {
			t.Fatalf("score %+v, want %+v", got, want)
		}
		again, err := e.Schedule(slices.Clone(e.Device()), slices.Clone(e.Sequence()))
		if err != nil || again != got {
			t.Fatalf("the same as a schedule: %+v, %v; want %+v", again, err, got)
		}
		device := slices.Clone(e.Device())
		placed := e.Place(device, p.Order())
		if want := (&naive{p, device}).step(e.Sequence()); placed != want {
			t.Fatalf("placed %+v, want %+v", placed, want)
		}
		eager := e.PlaceEager(device, p.Order())
		if want := (&naive{p, device}).step(e.Sequence()); eager != want {
			t.Fatalf("placed with eager transfers %+v, want %+v", eager, want)
		}
		if b := p.LowerBound(); got.Time < b*(1-1e-12) || placed.Time < b*(1-1e-12) {
			t.Fatalf("times %g and %g below the bound %g", got.Time, placed.Time, b)
		}
		if b := p.MemoryBound(); got.Peak < b || placed.Peak < b {
			t.Fatalf("peaks %d and %d below the bound %d", got.Peak, placed.Peak, b)
		}
		if fast := sched.NewEvaluator(p, sched.RunTime); fast.Cost(keys) != sched.RunTime.Cost(p.Machine(), got) {
			t.Fatalf("run time alone costs %g, want %g", fast.Cost(keys), sched.RunTime.Cost(p.Machine(), got))
		}
	}
}
