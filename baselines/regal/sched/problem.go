package sched

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"placer/internal/faults"
)

// MaxDevices bounds D: sets of devices are bits of a word.
const MaxDevices = 64

// Spec describes a problem; New checks it.
type Spec struct {
	Name     string
	Time     []float64 // [N], at least 0
	Internal []int64   // [N] memory that an op uses inside; nil: none. The model does not count it
	Tensors  []Tensor  // in any order
	Machine  Machine
}

// Tensor is what an op makes for others: data, or the mere fact that it has run.
type Tensor struct {
	Producer  int32
	Consumers []int32 // in any order; repetitions count once
	Size      int64   // 0 for control
	Control   bool
}

// Machine is D equal devices.
type Machine struct {
	Devices   int
	Memory    int64   // of each device; 0: no limit
	Bandwidth float64 // size per time; 0: transfers take no time
}

// TwoDevices returns the machine of the paper's experiments without its limit on
// memory: two devices, transfers in no time.
func TwoDevices() Machine { return Machine{Devices: 2} }

// Problem is a checked Spec. It does not change, so goroutines may share it, and
// slices that its methods return must not be modified.
type Problem struct {
	name     string
	machine  Machine
	time     []float64
	internal []int64
	order    []int32 // topological; among ready ops the lowest first

	outAt    []int32 // [N+1]: tensors of op i are outAt[i]..outAt[i+1]
	producer []int32 // [T]
	size     []int64 // [T]
	control  []bool  // [T]
	useAt    []int32 // [T+1] into use
	use      []int32 // consumers, ascending, each once
	inAt     []int32 // [N+1] into in
	in       []int32 // tensors that op i reads, ascending, each once
	afterAt  []int32 // [N+1] into after
	after    []int32 // ops that op i waits for by control
}

// New checks s and returns its problem. It keeps none of the slices. The error
// names every fault.
func New(s Spec) (*Problem, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	n, nt := len(s.Time), len(s.Tensors)
	p := &Problem{
		name: s.Name, machine: s.Machine, time: slices.Clone(s.Time), internal: slices.Clone(s.Internal),
		outAt: make([]int32, n+1), useAt: make([]int32, 1, nt+1), inAt: make([]int32, n+1), afterAt: make([]int32, n+1),
	}
	byProducer := make([]int, nt)
	for t := range byProducer {
		byProducer[t] = t
	}
	slices.SortStableFunc(byProducer, func(a, b int) int { return int(s.Tensors[a].Producer) - int(s.Tensors[b].Producer) })
	reads := make([][]int32, n)
	afters := make([][]int32, n)
	for _, from := range byProducer {
		x := &s.Tensors[from]
		t := int32(len(p.producer))
		p.producer, p.size, p.control = append(p.producer, x.Producer), append(p.size, x.Size), append(p.control, x.Control)
		p.outAt[x.Producer+1]++
		users := slices.Clone(x.Consumers)
		slices.Sort(users)
		for _, v := range slices.Compact(users) {
			p.use = append(p.use, v)
			reads[v] = append(reads[v], t)
			if x.Control {
				afters[v] = append(afters[v], x.Producer)
			}
		}
		p.useAt = append(p.useAt, int32(len(p.use)))
	}
	for i := range n {
		p.outAt[i+1] += p.outAt[i]
		p.in = append(p.in, reads[i]...)
		p.inAt[i+1] = int32(len(p.in))
		p.after = append(p.after, afters[i]...)
		p.afterAt[i+1] = int32(len(p.after))
	}
	p.sort()
	if len(p.order) < n {
		return nil, fmt.Errorf("problem %s: op %d waits for itself", s.Name, p.onCycle())
	}
	return p, nil
}

func (s *Spec) check() error {
	var all faults.List
	fault := func(format string, a ...any) {
		all.If(len(all) < 20, "problem %s: "+format, append([]any{s.Name}, a...)...)
	}
	n := int32(len(s.Time))
	if n == 0 {
		fault("it has no ops")
	}
	for i, x := range s.Time {
		if !(x >= 0) || math.IsInf(x, 0) {
			fault("op %d: time %g, want at least 0", i, x)
		}
	}
	if s.Internal != nil && len(s.Internal) != len(s.Time) {
		fault("internal memory of %d ops, want %d", len(s.Internal), len(s.Time))
	}
	for t := range s.Tensors {
		x := &s.Tensors[t]
		if x.Producer < 0 || x.Producer >= n {
			fault("tensor %d: producer %d of %d ops", t, x.Producer, n)
		}
		for _, v := range x.Consumers {
			if v < 0 || v >= n {
				fault("tensor %d: consumer %d of %d ops", t, v, n)
			}
		}
		if x.Size < 0 || x.Size > 1<<50 || x.Control && x.Size != 0 {
			fault("tensor %d: size %d, want 0 for control, else 0 to 2^50", t, x.Size)
		}
	}
	m := s.Machine
	if m.Devices < 1 || m.Devices > MaxDevices {
		fault("%d devices, want 1 to %d", m.Devices, MaxDevices)
	}
	if m.Memory < 0 || !(m.Bandwidth >= 0) || math.IsInf(m.Bandwidth, 0) {
		fault("memory %d and bandwidth %g, want at least 0", m.Memory, m.Bandwidth)
	}
	return errors.Join(all...)
}

// sort fills order with the ops that can run, lowest ready op first.
func (p *Problem) sort() {
	n := p.N()
	wait := make([]int32, n)
	for i := range n {
		wait[i] = int32(len(p.Inputs(int32(i))))
	}
	var ready minHeap
	for i := range n {
		if wait[i] == 0 {
			ready.push(int32(i))
		}
	}
	for len(ready) > 0 {
		i := ready.pop()
		p.order = append(p.order, i)
		for t := p.outAt[i]; t < p.outAt[i+1]; t++ {
			for _, v := range p.Consumers(t) {
				if wait[v]--; wait[v] == 0 {
					ready.push(v)
				}
			}
		}
	}
}

// onCycle returns an op of a cycle: the walk back along ops that never ran.
func (p *Problem) onCycle() int32 {
	ran := make([]bool, p.N())
	for _, i := range p.order {
		ran[i] = true
	}
	at := int32(slices.Index(ran, false))
	for range ran {
		for _, t := range p.Inputs(at) {
			if u := p.producer[t]; !ran[u] {
				at = u
				break
			}
		}
	}
	return at
}

// With returns the same graph on machine m.
func (p *Problem) With(m Machine) (*Problem, error) {
	if err := (&Spec{Name: p.name, Time: p.time, Machine: m}).check(); err != nil {
		return nil, err
	}
	q := *p
	q.machine = m
	return &q, nil
}

// Spec returns the description of p; New makes an equal problem of it.
func (p *Problem) Spec() Spec {
	s := Spec{Name: p.name, Time: slices.Clone(p.time), Internal: slices.Clone(p.internal), Machine: p.machine}
	for t := range p.producer {
		s.Tensors = append(s.Tensors, Tensor{p.producer[t], slices.Clone(p.Consumers(int32(t))), p.size[t], p.control[t]})
	}
	return s
}
