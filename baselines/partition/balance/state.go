package balance

import (
	"math"

	"placer/sim/throughput"
)

// state is a placement of blocks with what moves need.
type state struct {
	x     *throughput.Instance
	d     int
	block []uint8   // [B]
	pins  []int32   // [nets,D] blocks of the net on each device
	span  []int32   // [nets] devices of the net
	load  []float64 // [D]
	bytes []int64   // [D]
	pays  []float64 // [D] 1, or 0 for a CPU
	room  []int64   // [D]
}

func newState(x *throughput.Instance, block []uint8) *state {
	d := x.NumDevices()
	s := &state{
		x: x, d: d, block: make([]uint8, x.NumBlocks()), pins: make([]int32, len(x.Nets)*d), span: make([]int32, len(x.Nets)),
		load: make([]float64, d), bytes: make([]int64, d), pays: make([]float64, d), room: make([]int64, d),
	}
	for v := range d {
		c := &x.Classes[x.ClassOf[v]]
		s.room[v] = c.Memory
		if !c.CPU {
			s.pays[v] = 1
		}
	}
	s.set(block)
	return s
}

// set makes block the placement, from nothing, so that no rounding errors
// remain.
func (s *state) set(block []uint8) {
	copy(s.block, block)
	clear(s.pins)
	clear(s.span)
	for d := range s.load {
		s.load[d], s.bytes[d] = 0, 0
	}
	for b, d := range s.block {
		s.load[d] += s.x.Classes[s.x.ClassOf[d]].Seconds[b]
		s.bytes[d] += s.x.Size[b]
		for _, e := range s.x.NetsOf[b] {
			if s.pins[int(e)*s.d+int(d)]++; s.pins[int(e)*s.d+int(d)] == 1 {
				s.span[e]++
			}
		}
	}
	for e := range s.span {
		if s.span[e] < 2 {
			continue
		}
		for d := range s.d {
			if s.pins[e*s.d+d] > 0 {
				s.load[d] += s.pays[d] * s.x.Nets[e].Seconds
			}
		}
	}
}

// delta returns what moving block b from its device to q adds to the loads of
// the two.
func (s *state) delta(b int32, q uint8) (from, to float64) {
	p := s.block[b]
	var in, out float64 // nets that begin or end on q and p
	for _, e := range s.x.NetsOf[b] {
		row := s.pins[int(e)*s.d:]
		w := s.x.Nets[e].Seconds
		last, first := row[p] == 1, row[q] == 0
		switch {
		case s.span[e] == 1: // all on p, more than this one: every net has two blocks
			out += w
			in += w
		case s.span[e] == 2 && last && !first: // joins the others
			out -= w
			in -= w
		default:
			if last {
				out -= w
			}
			if first {
				in += w
			}
		}
	}
	from = s.pays[p]*out - s.x.Classes[s.x.ClassOf[p]].Seconds[b]
	to = s.pays[q]*in + s.x.Classes[s.x.ClassOf[q]].Seconds[b]
	return from, to
}

// move moves block b to q; from and to are its delta.
func (s *state) move(b int32, q uint8, from, to float64) {
	p := s.block[b]
	s.load[p] += from
	s.load[q] += to
	s.bytes[p] -= s.x.Size[b]
	s.bytes[q] += s.x.Size[b]
	s.block[b] = q
	for _, e := range s.x.NetsOf[b] {
		row := s.pins[int(e)*s.d:]
		if row[p]--; row[p] == 0 {
			s.span[e]--
		}
		if row[q]++; row[q] == 1 {
			s.span[e]++
		}
	}
}

// most returns the largest load, +Inf where memory does not suffice.
func (s *state) most() (seconds float64) {
	for d, l := range s.load {
		if s.bytes[d] > s.room[d] {
			return math.Inf(1)
		}
		seconds = max(seconds, l)
	}
	return seconds
}
