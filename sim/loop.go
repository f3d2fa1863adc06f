package sim

import (
	"fmt"
	"math"
	"math/bits"
)

// run simulates the step and returns the makespan. There is no event heap: the
// next event is that of the device with the lowest key, and what other devices do
// to a device waits in its inboxes and outboxes until the device's own next event.
func (s *Simulator) run(device []uint8, priority []int32) (makespan float64) {
	s.reset(device, priority)
	for _, i := range s.sources {
		s.ready(int(device[i]), i, 0)
	}
	if s.sending != nil {
		s.waiveControl()
	}
	left := s.n
	for d := range s.devs {
		left -= s.dispatch(d, 0, empty)
	}
	switch {
	case s.sending != nil:
		left -= s.runSending(&makespan)
	case s.fair != nil:
		left -= s.runFair(&makespan)
	default:
		left -= s.runQueued(&makespan)
	}
	if left != 0 {
		panic(fmt.Sprintf("sim: %d of %d ops never ran: the priorities are no permutation", left, s.n))
	}
	return makespan
}

// runQueued runs until nothing is left to happen, and returns how many ops it
// started.
func (s *Simulator) runQueued(makespan *float64) (started int) {
	memory := s.cfg.Memory
	for {
		d, key := s.next()
		if key == never {
			return started
		}
		t := math.Float64frombits(key)
		dev := &s.devs[d]
		if dev.arrive <= t {
			s.arrivals(d, t)
		}
		if memory {
			if dev.start <= t || dev.release <= t {
				s.memoryEvents(d, t)
			}
			dev.advance(t)
		}
		best := int32(empty)
		if dev.running != none {
			*makespan = t
			best = s.complete(d, t)
		}
		started += s.dispatch(d, t, best)
	}
}

// next returns the device with the earliest event and its key. Ties go to the
// lowest running op: the order in which completions at one instant reserve links.
// Up to eight devices it has no branch that could be predicted wrongly.
func (s *Simulator) next() (d int, key uint64) {
	k := &s.key
	key = min(k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7])
	same := one(k[0] == key) | one(k[1] == key)<<1 | one(k[2] == key)<<2 | one(k[3] == key)<<3 |
		one(k[4] == key)<<4 | one(k[5] == key)<<5 | one(k[6] == key)<<6 | one(k[7] == key)<<7
	if s.d > 8 {
		for x := 8; x < s.d; x++ {
			if k[x] < key {
				key, same = k[x], 0
			}
			same |= one(k[x] == key) << x
		}
	}
	d = bits.TrailingZeros64(same)
	if same &= same - 1; same != 0 && key != never {
		for ; same != 0; same &= same - 1 {
			if x := bits.TrailingZeros64(same); s.devs[x].running < s.devs[d].running {
				d = x
			}
		}
	}
	return d, key
}

func one(b bool) (x uint64) {
	if b {
		x = 1
	}
	return x
}

// ready puts op i, ready at time t, into the queue of device d.
func (s *Simulator) ready(d int, i int32, t float64) {
	if s.fifo {
		s.fifos[d].push(i, t)
	} else {
		s.ranked[d].push(s.state[i].rank)
	}
}

// dispatch starts the best ready op of idle device d and returns 1, or 0 if there
// is none. best is the rank of an op that is ready but not in the queue, or empty.
func (s *Simulator) dispatch(d int, t float64, best int32) int {
	dev := &s.devs[d]
	var i int32
	if s.fifo {
		i = s.fifos[d].pop()
	} else {
		if q := &s.ranked[d]; q.lowest < best {
			if best != empty {
				q.push(best)
			}
			best = q.pop()
		}
		i = none
		if best != empty {
			i = s.opAt[best]
		}
	}
	dev.running = i
	if i == none {
		s.key[d] = math.Float64bits(dev.arrive)
		return 0
	}
	row := &s.ops[i]
	seconds := row.seconds
	if !s.equal {
		seconds = s.seconds[d][i]
	}
	s.key[d] = math.Float64bits(t + seconds)
	dev.bytes += row.alloc
	// Nothing uses the hint: its loads bring what complete needs nearer, while the
	// events of other devices are at work.
	w := s.program[row.sends]
	first := min(int(w^w>>31), s.n-1) // the consumer, if there is but one
	dev.hint = uint32(s.program[row.inputs]) + s.state[first].waits
	if s.record {
		s.starts[i] = t
	}
	return 1
}

// complete ends the op that runs on device d: its consumers there may become
// ready, its messages leave, its inputs may be freed. Of the ops that it makes
// ready it returns the lowest rank without putting it into the queue.
func (s *Simulator) complete(d int, t float64) (best int32) {
	best = empty
	dev := &s.devs[d]
	i := dev.running
	row := &s.ops[i]
	next := s.ops[i+1].inputs
	if s.cfg.Memory {
		dev.bytes -= row.free
		for _, r := range s.program[row.inputs:row.sends] {
			if r < 0 {
				s.keep(d, ^r)
			} else {
				s.drop(dev, d, r)
			}
		}
	}
	program := s.program[row.sends:next]
	m := int32(0)
	for p := 0; p < len(program); m++ {
		w := program[p]
		p++
		if w < 0 {
			v := ^w
			x := &s.state[v]
			waits := x.waits
			if e := int(waits & deviceMask); e != d {
				s.send(s.first[i]+m, d, e, t)
				continue
			}
			waits -= 1 << deviceBits
			x.waits = waits
			if waits < 1<<deviceBits {
				best = s.take(d, v, x.rank, best, t)
			}
			continue
		}
		r := program[p]
		p++
		users, more, remote := w>>2, int32(0), uint64(0)
		if w&2 != 0 {
			more = program[p]
			p++
		}
		for _, v := range program[p : p+int(users)] {
			x := &s.state[v]
			waits := x.waits
			if e := waits & deviceMask; int(e) != d {
				remote |= 1 << e
				users--
				continue
			}
			waits -= 1 << deviceBits
			x.waits = waits
			if waits < 1<<deviceBits {
				best = s.take(d, v, x.rank, best, t)
			}
		}
		p += int(w >> 2)
		if r != none && s.cfg.Memory {
			users += more + int32(bits.OnesCount64(remote))
			if w&1 != 0 {
				users = always
			}
			s.rows[r].home = uint32(users)<<deviceBits | uint32(d)
		}
		for ; remote != 0; remote &= remote - 1 {
			s.send(s.first[i]+m, d, bits.TrailingZeros64(remote), t)
		}
	}
	return best
}

// always is a number of users that is never counted down to nothing.
const always = 1 << 25

// take makes op i ready. It queues the op or, if it has the lowest rank so far,
// the one that had.
func (s *Simulator) take(d int, i, rank, best int32, t float64) int32 {
	if s.fifo {
		s.fifos[d].push(i, t)
		return best
	}
	if best == empty {
		return rank
	}
	s.ranked[d].push(max(rank, best))
	return min(rank, best)
}

// drop ends one use of the tensor of row r on device d. The last one of a view is one
// of the tensor whose memory it shares.
func (s *Simulator) drop(dev *deviceState, d int, r int32) {
	for {
		row := &s.rows[r]
		if int(row.home&deviceMask) != d {
			break
		}
		row.home -= 1 << deviceBits
		if row.home >= 1<<deviceBits {
			return
		}
		if row.share == none {
			dev.bytes -= row.size
			return
		}
		r = row.share
	}
	n := &s.copies[int(r)*s.d+d]
	*n--
	if *n == 0 {
		dev.bytes -= s.rows[r].size
	}
}

// keep adds one use of the tensor of row r on device d.
func (s *Simulator) keep(d int, r int32) {
	if row := &s.rows[r]; int(row.home&deviceMask) == d {
		row.home += 1 << deviceBits
	} else {
		s.copies[int(r)*s.d+d]++
	}
}

// send reserves the route of message m, ready at time t.
func (s *Simulator) send(m int32, src, dst int, t float64) {
	size := s.messages[m].size
	if s.fair != nil {
		s.sendFair(m, size, src, dst, t)
		return
	}
	if s.sending != nil {
		s.sendCopy(m, size, dst)
		return
	}
	k := src*s.d + dst
	r := &s.routes[k]
	start := t
	hops := s.hops[r.first:r.end]
	for _, l := range hops {
		if free := s.linkFree[l]; free > start {
			start = free
		}
	}
	end := start + r.seconds(size)
	for _, l := range hops {
		s.linkFree[l] = end
	}
	id := int32(len(s.transfers))
	s.transfers = append(s.transfers, transfer{start, end, size, uint32(m)<<deviceBits | uint32(dst), none, none})
	to, in := &s.devs[dst], &s.inboxes[r.inbox]
	now := start == t && s.cfg.Memory
	if now { // whatever came before in the inbox has ended, and so started
		s.memoryEvents(dst, t)
		to.advance(t)
		to.bytes += size
	}
	if in.last != none {
		s.transfers[in.last].nextIn = id
	}
	in.last = id
	if in.arrive == none {
		in.arrive, in.arriveAt = id, end
		if end < to.arrive {
			to.arrive = end
			if to.running == none {
				s.key[dst] = math.Float64bits(end)
			}
		}
	}
	if !s.cfg.Memory {
		return
	}
	if !now && in.start == none {
		in.start, in.startAt = id, start
		if start < to.start {
			to.start = start
		}
	}
	out := &s.outboxes[r.outbox]
	if out.last != none {
		s.transfers[out.last].nextOut = id
	}
	out.last = id
	if out.release == none {
		out.release, out.releaseAt = id, end
		if from := &s.devs[src]; end < from.release {
			from.release = end
		}
	}
}

// arrivals takes in the transfers that have reached device d by time t; under
// FIFO in order of time, since that asks when an op became ready.
func (s *Simulator) arrivals(d int, t float64) {
	dev := &s.devs[d]
	boxes := s.inboxes[s.inboxAt[d]:s.inboxAt[d+1]]
	for dev.arrive <= t {
		until, next := t, inf
		if s.fifo {
			until = dev.arrive
		}
		for k := range boxes {
			in := &boxes[k]
			for in.arriveAt <= until {
				x := &s.transfers[in.arrive]
				s.receive(d, x.message(), in.arriveAt)
				in.arrive, in.arriveAt = x.nextIn, inf
				if x.nextIn != none {
					in.arriveAt = s.transfers[x.nextIn].end
				}
			}
			if in.arriveAt < next {
				next = in.arriveAt
			}
		}
		dev.arrive = next
	}
}

// receive counts message m, arrived at time t, for its consumers on device d.
func (s *Simulator) receive(d int, m int32, t float64) {
	msg := &s.messages[m]
	local := int32(0)
	for _, v := range s.use[msg.first:msg.end] {
		x := &s.state[v]
		waits := x.waits
		if int(waits&deviceMask) != d {
			continue
		}
		local++
		waits -= 1 << deviceBits
		x.waits = waits
		if waits < 1<<deviceBits {
			s.ready(d, v, t)
		}
	}
	if msg.row != none {
		s.copies[int(msg.row)*s.d+d] = local
	}
}
