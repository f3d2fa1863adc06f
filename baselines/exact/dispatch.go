package exact

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"placer/sim"
)

// state is a step under way.
type state struct {
	now      float64
	waits    []int32   // [N] messages missing
	finish   []float64 // [N] 0: not started
	running  []int32   // [D] op, or none
	fresh    []bool    // [D] nothing has been dispatched there yet
	ready    [][]int32 // [D]
	links    []float64 // [L] when free
	coming   []arrival
	sent     []float64 // [M*D] when the message arrives; 0: not sent
	order    []int32   // ops in the order in which they started
	makespan float64
}

// arrival is a transfer that has not been taken in.
type arrival struct {
	at      float64
	message int32
	to      int32
}

func newState(t *table) *state {
	return &state{waits: make([]int32, t.n), finish: make([]float64, t.n), running: make([]int32, t.d), fresh: make([]bool, t.d), ready: make([][]int32, t.d),
		links: make([]float64, len(t.p.Machine.Links)), sent: make([]float64, len(t.messages)*t.d)}
}

func (x *state) copy(y *state) {
	x.now, x.makespan = y.now, y.makespan
	copy(x.waits, y.waits)
	copy(x.finish, y.finish)
	copy(x.running, y.running)
	copy(x.fresh, y.fresh)
	for d := range x.ready {
		x.ready[d] = append(x.ready[d][:0], y.ready[d]...)
	}
	copy(x.links, y.links)
	x.coming = append(x.coming[:0], y.coming...)
	copy(x.sent, y.sent)
	x.order = append(x.order[:0], y.order...)
}

// dispatchAll searches all orders of the placement that is complete. Heads and
// tails are those that bound.go left.
func (s *search) dispatchAll() {
	s.differs = s.differs || s.contention != sim.FIFO && s.contention != sim.Uncontended
	s.placement(s.device)
	x := s.states[0]
	x.now, x.makespan = 0, 0
	copy(x.waits, s.waits)
	clear(x.finish)
	clear(x.links)
	clear(x.sent)
	x.coming, x.order = x.coming[:0], x.order[:0]
	for d := range s.d {
		x.running[d], x.fresh[d], x.ready[d] = none, true, x.ready[d][:0]
	}
	for i, d := range s.device {
		if s.waits[i] == 0 {
			x.ready[d] = append(x.ready[d], int32(i))
		}
	}
	s.seen = map[string]struct{}{}
	s.dispatch(0)
}

// dispatch runs state k until a device has a choice, and then branches.
func (s *search) dispatch(k int) {
	x := s.states[k]
	for {
		d, t := s.next(x)
		if d == none {
			s.leaf(x)
			return
		}
		s.event(x, d, t)
		switch r := x.ready[d]; len(r) {
		case 0:
		case 1:
			s.start(x, d, r[0])
		default:
			s.branch(k, d)
			return
		}
	}
}

// next returns the device with the earliest event; ties go to the lower running
// op, as in the simulator.
func (s *search) next(x *state) (d int, at float64) {
	d, at = none, math.Inf(1)
	for e := range s.d {
		when := math.Inf(1)
		switch i := x.running[e]; {
		case i != none:
			when = x.finish[i]
		case x.fresh[e]:
			when = 0
		default:
			for _, c := range x.coming {
				if int(c.to) == e {
					when = min(when, c.at)
				}
			}
		}
		if when < at || when == at && d != none && x.running[e] < x.running[d] {
			d, at = e, when
		}
	}
	return d, at
}

// event takes in what has reached device d by time t and ends the op that runs
// there.
func (s *search) event(x *state, d int, t float64) {
	x.now, x.fresh[d] = t, false
	kept := x.coming[:0]
	for _, c := range x.coming {
		if int(c.to) != d || c.at > t {
			kept = append(kept, c)
			continue
		}
		for _, v := range s.messages[c.message].users {
			if int(s.device[v]) == d {
				s.unblock(x, d, v)
			}
		}
	}
	x.coming = kept
	i := x.running[d]
	if i == none {
		return
	}
	x.running[d], x.makespan = none, t
	for _, m := range s.sends[i] {
		remote := uint64(0)
		for _, v := range s.messages[m].users {
			if e := int(s.device[v]); e == d {
				s.unblock(x, d, v)
			} else {
				remote |= 1 << e
			}
		}
		for e := range s.d {
			if remote>>e&1 != 0 {
				s.send(x, m, d, e, t)
			}
		}
	}
}

func (s *search) unblock(x *state, d int, v int32) {
	if x.waits[v]--; x.waits[v] == 0 {
		x.ready[d] = append(x.ready[d], v)
	}
}

// send reserves the route of message m, ready at time t.
func (s *search) send(x *state, m int32, from, to int, t float64) {
	r := &s.routes[from*s.d+to]
	start := t
	for _, l := range r.links {
		start = max(start, x.links[l])
	}
	end := start + r.seconds(s.messages[m].bytes)
	for _, l := range r.links {
		x.links[l] = end
	}
	x.sent[int(m)*s.d+to] = end
	x.coming = append(x.coming, arrival{end, m, int32(to)})
}

// start starts op i of device d's ready ops.
func (s *search) start(x *state, d int, i int32) {
	x.ready[d] = slices.DeleteFunc(x.ready[d], func(v int32) bool { return v == i })
	x.running[d], x.finish[i] = i, x.now+s.seconds[d][i]
	x.order = append(x.order, i)
}

// branch tries every ready op of device d next, the one with the longest way to
// the end first.
func (s *search) branch(k, d int) {
	x := s.states[k]
	if !s.first(x) {
		return
	}
	choices := slices.Clone(x.ready[d])
	slices.SortFunc(choices, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.seconds[d][b]+s.tail[b], s.seconds[d][a]+s.tail[a]), cmp.Compare(a, b))
	})
	y := s.states[k+1]
	for _, i := range choices {
		if s.stopped || s.visit() {
			return
		}
		y.copy(x)
		s.start(y, d, i)
		if !s.cut(s.rest(y)) {
			s.dispatch(k + 1)
		}
	}
}

// rest returns a lower bound of the makespan from state x on.
func (s *search) rest(x *state) (bound float64) {
	head := s.head // not used by anything else in here but for this
	for d := range s.d {
		s.jobs[d] = s.jobs[d][:0]
	}
	for i := range s.n {
		if x.finish[i] > 0 {
			bound = max(bound, x.finish[i]+s.tail[i])
			continue
		}
		d := int(s.device[i])
		at := x.now
		if r := x.running[d]; r != none {
			at = x.finish[r]
		}
		for _, k := range s.before[i] {
			m := &s.messages[k]
			end := x.finish[m.from]
			if end == 0 {
				end = head[m.from] + s.seconds[s.device[m.from]][m.from]
			}
			if a := x.sent[int(k)*s.d+d]; a > 0 {
				end = a
			} else {
				end += s.crossing(m, int32(i), s.device)
			}
			at = max(at, end)
		}
		head[i] = at
		bound = max(bound, at+s.seconds[d][i]+s.tail[i])
		s.jobs[d] = append(s.jobs[d], job{at, s.seconds[d][i], s.tail[i]})
	}
	for d := range s.d {
		bound = max(bound, alone(s.jobs[d]))
	}
	return bound
}

// leaf compares a whole step with the best and has it evaluated if it is better.
func (s *search) leaf(x *state) {
	if s.cut(x.makespan) {
		return
	}
	if s.stopped = s.stopped || s.track.Done(); s.stopped {
		return
	}
	for i, d := range s.device {
		s.final[i] = uint8(d)
	}
	for r, i := range x.order {
		s.priority[i] = int32(r)
	}
	score := s.track.TryPlan(s.final, s.priority)
	if score.Value != x.makespan {
		s.differs = true
	}
	if score.Feasible() {
		s.best = min(s.best, score.Value)
		return
	}
	// Of two ways to one state one may fit and the other not, since peaks differ.
	s.seen = nil
}

// first reports whether state x has not been seen before under this placement.
// What happened before matters no more, so two ways to one state end alike.
func (s *search) first(x *state) bool {
	if s.seen == nil {
		return true
	}
	key := s.key[:0]
	number := func(v uint64) { key = binary.LittleEndian.AppendUint64(key, v) }
	started := uint64(0)
	for i, f := range x.finish {
		if f > 0 {
			started |= 1 << i
		}
	}
	number(started)
	for d, i := range x.running {
		fresh := byte(0)
		if x.fresh[d] {
			fresh = 1
		}
		key = append(key, byte(i), fresh)
		if i != none {
			number(math.Float64bits(x.finish[i]))
		}
	}
	number(math.Float64bits(x.now))
	for _, f := range x.links {
		number(math.Float64bits(max(f, x.now)))
	}
	slices.SortFunc(x.coming, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.message, b.message), cmp.Compare(a.to, b.to))
	})
	for _, c := range x.coming {
		number(uint64(c.message)<<32 | uint64(c.to))
		number(math.Float64bits(c.at))
	}
	s.key = key
	if _, ok := s.seen[string(key)]; ok {
		return false
	}
	if len(s.seen) < seenMost {
		s.seen[string(key)] = struct{}{}
	}
	return true
}

// seenMost bounds the states kept for one placement.
const seenMost = 1 << 18
