package sched

import (
	"fmt"
	"math/bits"
)

// Evaluator judges schedules of one problem. It allocates nothing after New and
// serves one goroutine.
type Evaluator struct {
	p         *Problem
	objective Objective
	memory    bool // whether peaks are tracked
	pin       int32

	device []uint8 // [N]
	needed []int32 // items that the placement needs: all ops, then transfers
	abroad []uint64
	moves  []move // [T*D], item N+x is moves[x]

	keys, spare []uint64 // sort buffers: inverted priority << 32 | item
	rank        []int32  // [Items] place of a needed item in the order of priority
	byRank      []int32
	ready       []uint64 // bits over ranks
	waits0      []int32  // [N] tensors that each op reads
	waits       []int32

	sequence []int32 // items of the last schedule, in its order
	end      []float64
	free     []float64 // [D]

	held, peak []int64 // [D]
	users      []int32 // [T*D] ops and transfers there that will still read the tensor
}

// move is a transfer.
type move struct {
	tensor  int32
	to      uint8
	control bool
}

// NewEvaluator returns an evaluator of p. Peaks are tracked when the objective or
// the machine's limit needs them.
func NewEvaluator(p *Problem, o Objective) *Evaluator {
	n, nt, d := p.N(), p.T(), p.D()
	e := &Evaluator{
		p: p, objective: o, memory: o == PeakMemory || p.machine.Memory > 0, pin: -1,
		device: make([]uint8, n), needed: make([]int32, 0, p.Items()), abroad: make([]uint64, nt), moves: make([]move, nt*d),
		keys: make([]uint64, p.Items()), spare: make([]uint64, p.Items()), rank: make([]int32, p.Items()), byRank: make([]int32, p.Items()),
		ready: make([]uint64, p.Items()/64+1), waits0: make([]int32, n), waits: make([]int32, n),
		sequence: make([]int32, 0, p.Items()), end: make([]float64, n), free: make([]float64, d),
		held: make([]int64, d), peak: make([]int64, d), users: make([]int32, nt*d),
	}
	for i := range n {
		e.waits0[i] = int32(len(p.Inputs(int32(i))))
	}
	for x := range e.moves {
		e.moves[x] = move{int32(x / d), uint8(x % d), p.control[x/d]}
	}
	return e
}

// Pin fixes op i on the first device in every chromosome from now on (A.2: the
// op that takes most time or memory, which breaks the symmetry of equal
// devices); -1 for none.
func (e *Evaluator) Pin(i int32) { e.pin = i }

// Problem returns what e judges.
func (e *Evaluator) Problem() *Problem { return e.p }

// Objective returns what Cost minimises.
func (e *Evaluator) Objective() Objective { return e.objective }

// Keys returns the length of a chromosome.
func (e *Evaluator) Keys() int { return e.p.Keys() }

// Device returns the placement judged last, [N]. The next call overwrites it.
func (e *Evaluator) Device() []uint8 { return e.device }

// Sequence returns the schedule judged last, as items. The next call overwrites
// it.
func (e *Evaluator) Sequence() []int32 { return e.sequence }

// Score judges the schedule in Device and Sequence.
func (e *Evaluator) score() (s Score) {
	s.Time = e.stepTime()
	if e.memory {
		s.Peak = e.stepMemory()
	}
	return s
}

// findNeeded lists the ops and the transfers that the placement in device needs.
func (e *Evaluator) findNeeded() {
	p, n := e.p, int32(e.p.N())
	needed := e.needed[:n]
	for i := range needed {
		needed[i] = int32(i)
	}
	d := int32(p.D())
	for t, u := range p.producer {
		var at uint64
		for _, v := range p.use[p.useAt[t]:p.useAt[t+1]] {
			at |= 1 << (e.device[v] & 63)
		}
		at &^= 1 << (e.device[u] & 63)
		e.abroad[t] = at
		for ; at != 0; at &= at - 1 {
			needed = append(needed, n+int32(t)*d+int32(bits.TrailingZeros64(at)))
		}
	}
	e.needed = needed
}

// Place judges ops run in order (each once, inputs first) under a placement, each
// tensor transferred just before the first op that reads it on a device. Score
// counts the peak only if the evaluator tracks memory. It keeps neither slice.
func (e *Evaluator) Place(device []uint8, order []int32) Score {
	p := e.p
	if len(device) != p.N() || len(order) != p.N() {
		panic(fmt.Sprintf("sched: %d devices and %d ops in order for %d ops", len(device), len(order), p.N()))
	}
	copy(e.device, device)
	clear(e.abroad)
	e.sequence = e.sequence[:0]
	n, d := int32(p.N()), int32(p.D())
	for _, i := range order {
		to := device[i]
		for _, t := range p.Inputs(i) {
			if device[p.producer[t]] != to && e.abroad[t]>>to&1 == 0 {
				e.abroad[t] |= 1 << to
				e.sequence = append(e.sequence, n+t*d+int32(to))
			}
		}
		e.sequence = append(e.sequence, i)
	}
	return e.score()
}

// PlaceEager is Place with each tensor transferred just behind its producer, to
// all devices that need it.
func (e *Evaluator) PlaceEager(device []uint8, order []int32) Score {
	p := e.p
	if len(device) != p.N() || len(order) != p.N() {
		panic(fmt.Sprintf("sched: %d devices and %d ops in order for %d ops", len(device), len(order), p.N()))
	}
	copy(e.device, device)
	e.findNeeded()
	e.sequence = e.sequence[:0]
	n, d := int32(p.N()), int32(p.D())
	for _, i := range order {
		e.sequence = append(e.sequence, i)
		for t := p.outAt[i]; t < p.outAt[i+1]; t++ {
			for to := e.abroad[t]; to != 0; to &= to - 1 {
				e.sequence = append(e.sequence, n+t*d+int32(bits.TrailingZeros64(to)))
			}
		}
	}
	return e.score()
}

// Schedule judges a placement under a total order of ops and transfers. It
// returns an error unless the order holds every op once, every needed transfer
// once, nothing else, and nothing before what it needs. It keeps neither slice.
func (e *Evaluator) Schedule(device []uint8, sequence []int32) (Score, error) {
	p := e.p
	if len(device) != p.N() {
		panic(fmt.Sprintf("sched: %d devices for %d ops", len(device), p.N()))
	}
	for i, d := range device {
		if int(d) >= p.D() {
			return Score{}, fmt.Errorf("problem %s: op %d is on device %d of %d", p.name, i, d, p.D())
		}
	}
	copy(e.device, device)
	e.findNeeded()
	if err := e.checkSequence(sequence); err != nil {
		return Score{}, err
	}
	e.sequence = append(e.sequence[:0], sequence...)
	return e.score(), nil
}

func (e *Evaluator) checkSequence(sequence []int32) error {
	p, n := e.p, int32(e.p.N())
	if len(sequence) != len(e.needed) {
		return fmt.Errorf("problem %s: schedule of %d items, the placement needs %d", p.name, len(sequence), len(e.needed))
	}
	at := e.rank // place in the sequence, plus one; 0 where it is not there
	clear(at)
	for k, x := range sequence {
		if x < 0 || int(x) >= p.Items() {
			return fmt.Errorf("problem %s: schedule: item %d of %d does not exist", p.name, x, p.Items())
		}
		if at[x] != 0 {
			return fmt.Errorf("problem %s: schedule: item %d comes twice", p.name, x)
		}
		at[x] = int32(k) + 1
	}
	for _, x := range e.needed {
		if at[x] == 0 {
			return fmt.Errorf("problem %s: schedule: item %d is missing", p.name, x)
		}
		if x >= n {
			if u := p.producer[e.moves[x-n].tensor]; at[u] > at[x] {
				return fmt.Errorf("problem %s: schedule: transfer %d comes before op %d, which makes its tensor", p.name, x, u)
			}
			continue
		}
		for _, t := range p.Inputs(x) {
			from := p.producer[t]
			if e.device[from] != e.device[x] {
				from = p.Transfer(t, int(e.device[x]))
			}
			if at[from] > at[x] {
				return fmt.Errorf("problem %s: schedule: op %d comes before item %d, which brings it tensor %d", p.name, x, from, t)
			}
		}
	}
	return nil
}
