package sim

import (
	"fmt"
	"math/bits"
)

// run simulates the step and returns the makespan. There is no event heap: the
// next event is that of the device with the lowest key, and what other devices do
// to a device waits in its lanes until the device's own next event.
func (s *Simulator) run(device []uint8, priority []int32) float64 {
	s.reset(device, priority)
	for _, i := range s.sources {
		s.ready(int(device[i]), i, 0, priority)
	}
	left := s.n
	for d := range s.devs {
		left -= s.dispatch(d, 0)
	}
	makespan := 0.0
	for s.fair == nil {
		d, t := s.next()
		if t == inf {
			break
		}
		dev := &s.devs[d]
		if dev.arrive <= t {
			s.arrivals(d, t, priority)
		}
		if s.cfg.Memory {
			s.settle(d, t)
		}
		if dev.running != none {
			makespan = t
			s.complete(d, t, priority)
		}
		left -= s.dispatch(d, t)
	}
	if s.fair != nil {
		var started int
		makespan, started = s.runFair(priority)
		left -= started
	}
	if left != 0 {
		panic(fmt.Sprintf("sim: %d of %d ops never ran: the priorities are no permutation", left, s.n))
	}
	return makespan
}

// next returns the device with the earliest event and its time. Ties go to the
// lowest running op: the order in which completions at one instant reserve links.
func (s *Simulator) next() (d int, t float64) {
	t = s.key[0]
	for x, k := range s.key[1:] {
		if k < t || k == t && s.devs[x+1].running < s.devs[d].running {
			d, t = x+1, k
		}
	}
	return d, t
}

// ready puts op i, ready at time t, into the queue of device d.
func (s *Simulator) ready(d int, i int32, t float64, priority []int32) {
	if s.fifo {
		s.fifos[d].push(i, t)
	} else {
		s.ranked[d].push(priority[i])
	}
}

// dispatch starts the best ready op of idle device d and returns 1, or 0 if there
// is none.
func (s *Simulator) dispatch(d int, t float64) int {
	dev := &s.devs[d]
	var i int32
	if s.fifo {
		i = s.fifos[d].pop()
	} else if i = s.ranked[d].pop(); i != none {
		i = s.opAt[i]
	}
	dev.running = i
	if i == none {
		s.key[d] = dev.arrive
		return 0
	}
	s.key[d] = t + s.seconds[d][i]
	dev.bytes += s.ops[i].alloc
	if s.record {
		s.starts[i] = t
	}
	return 1
}

// complete ends the op that runs on device d: its consumers there may become
// ready, its messages leave, its inputs may be freed.
func (s *Simulator) complete(d int, t float64, priority []int32) {
	dev := &s.devs[d]
	i := dev.running
	row := &s.ops[i]
	dev.bytes -= row.free
	for m := row.message; m < s.ops[i+1].message; m++ {
		msg := &s.messages[m]
		local, remote := int32(0), uint64(0)
		for _, v := range s.use[msg.first:msg.end] {
			st := s.state[v]
			if e := int(st & deviceMask); e != d {
				remote |= 1 << e
				continue
			}
			local++
			st -= 1 << deviceBits
			s.state[v] = st
			if st < 1<<deviceBits {
				s.ready(d, v, t, priority)
			}
		}
		if msg.row != none {
			users := local + int32(bits.OnesCount64(remote))
			if msg.resident {
				users = 1 << 30 // never freed
			}
			s.refs[int(msg.row)*s.d+d] = users
		}
		for ; remote != 0; remote &= remote - 1 {
			s.send(m, msg.size, d, bits.TrailingZeros64(remote), t)
		}
	}
	for _, r := range s.inputs[row.input:s.ops[i+1].input] {
		s.drop(dev, d, r)
	}
}

// drop ends one use of the tensor of row r on device d.
func (s *Simulator) drop(dev *deviceState, d int, r int32) {
	n := &s.refs[int(r)*s.d+d]
	*n--
	if *n == 0 {
		dev.bytes -= s.rowSize[r]
	}
}

// send reserves the route of message m, ready at time t.
func (s *Simulator) send(m int32, size int64, src, dst int, t float64) {
	if s.fair != nil {
		s.sendFair(m, size, src, dst, t)
		return
	}
	k := src*s.d + dst
	r := &s.routes[k]
	start := t
	for _, l := range s.hops[r.first:r.end] {
		start = max(start, s.linkFree[l])
	}
	end := start + r.seconds(size)
	for _, l := range s.hops[r.first:r.end] {
		s.linkFree[l] = end
	}
	id := int32(len(s.transfers))
	s.transfers = append(s.transfers, transfer{start, end, m, none, uint8(src), uint8(dst)})
	ln := &s.lanes[k]
	if ln.last != none {
		s.transfers[ln.last].next = id
	}
	ln.last = id
	to := &s.devs[dst]
	if ln.arrive == none {
		ln.arrive = id
		s.arriveAt[dst*s.d+src] = end
		if end < to.arrive {
			to.arrive = end
			if to.running == none {
				s.key[dst] = end
			}
		}
	}
	if !s.cfg.Memory {
		return
	}
	if ln.start == none {
		ln.start = id
		s.startAt[dst*s.d+src] = start
		to.start = min(to.start, start)
	}
	if ln.release == none {
		ln.release = id
		s.releaseAt[k] = end
		s.devs[src].release = min(s.devs[src].release, end)
	}
}

// arrivals takes in the transfers that have reached device d by time t, in order
// of time, since FIFO asks when an op became ready.
func (s *Simulator) arrivals(d int, t float64, priority []int32) {
	dev := &s.devs[d]
	row := s.arriveAt[d*s.d : (d+1)*s.d]
	for dev.arrive <= t {
		at, next := dev.arrive, inf
		for src, first := range row {
			for first <= at {
				ln := &s.lanes[src*s.d+d]
				x := &s.transfers[ln.arrive]
				s.receive(d, x.message, at, priority)
				ln.arrive = x.next
				first = inf
				if x.next != none {
					first = s.transfers[x.next].end
				}
				row[src] = first
			}
			next = min(next, first)
		}
		dev.arrive = next
	}
}

// receive counts message m, arrived at time t, for its consumers on device d.
func (s *Simulator) receive(d int, m int32, t float64, priority []int32) {
	msg := &s.messages[m]
	local := int32(0)
	for _, v := range s.use[msg.first:msg.end] {
		st := s.state[v]
		if int(st&deviceMask) != d {
			continue
		}
		local++
		st -= 1 << deviceBits
		s.state[v] = st
		if st < 1<<deviceBits {
			s.ready(d, v, t, priority)
		}
	}
	if msg.row != none {
		s.refs[int(msg.row)*s.d+d] = local
	}
}

// settle brings the bytes of device d up to time t. Within an instant the order
// of changes does not matter: the peak is taken when the instant has passed, and
// nothing is allocated and freed at one instant.
func (s *Simulator) settle(d int, t float64) {
	dev := &s.devs[d]
	for {
		at := min(dev.start, dev.release)
		if at > t {
			break
		}
		dev.advance(at)
		if dev.start == at {
			s.allocate(dev, d, at)
		} else {
			s.release(dev, d, at)
		}
	}
	dev.advance(t)
}

// advance notes the peak before time t.
func (dev *deviceState) advance(t float64) {
	if t > dev.instant {
		dev.peak = max(dev.peak, dev.bytes)
		dev.instant = t
	}
}

// allocate makes room for the transfers to device d that start by time t.
func (s *Simulator) allocate(dev *deviceState, d int, t float64) {
	row, next := s.startAt[d*s.d:(d+1)*s.d], inf
	for src, first := range row {
		for first <= t {
			ln := &s.lanes[src*s.d+d]
			x := &s.transfers[ln.start]
			dev.bytes += s.messages[x.message].size
			ln.start = x.next
			first = inf
			if x.next != none {
				first = s.transfers[x.next].start
			}
			row[src] = first
		}
		next = min(next, first)
	}
	dev.start = next
}

// release ends the transfers from device d that have ended by time t.
func (s *Simulator) release(dev *deviceState, d int, t float64) {
	row, next := s.releaseAt[d*s.d:(d+1)*s.d], inf
	for dst, first := range row {
		for first <= t {
			ln := &s.lanes[d*s.d+dst]
			x := &s.transfers[ln.release]
			s.released(dev, d, x.message)
			ln.release = x.next
			first = inf
			if x.next != none {
				first = s.transfers[x.next].end
			}
			row[dst] = first
		}
		next = min(next, first)
	}
	dev.release = next
}

// released ends the use that a transfer made of message m on its sender d.
func (s *Simulator) released(dev *deviceState, d int, m int32) {
	if msg := &s.messages[m]; msg.row != none {
		s.drop(dev, d, msg.row)
	} else {
		dev.bytes -= msg.size
	}
}
