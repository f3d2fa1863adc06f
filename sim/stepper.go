package sim

import (
	"fmt"
	"math"
	"math/bits"

	"placer/hw"
)

// stepper does what the event loop of Simulator does, for the length of a step alone:
// it counts no memory, and it gives up where the step is proven to be longer than a
// limit. Two things make it faster. Its tables are in the order of the ranks, which is
// about that in which ops run. And only what an op sends to other devices has to happen
// in the order of time: see run.
//
// It needs priorities, links that serve one transfer at a time, and times that do not
// vanish in the clock (see doc.go).
type stepper struct {
	t *tables
	stepTables
	held  []held  // [D] by the placement
	given []uint8 // [N] device of each op
	// waits are the messages that an op waits for << deviceBits | device, by rank.
	waits []uint32 // during the step
	start []uint32 // at its start

	key       [hw.MaxPlaced]uint64 // as in Simulator
	devs      []stepDevice
	queues    []rankQueue
	transfers []stepTransfer
	inboxes   []stepInbox
	linkFree  []float64 // [L]
	order     []int32   // [N] ops in an order that is on each device that of their starts
	started   int       // how many of them
	memory    memoryBound
}

// stepDevice is a device during a step.
type stepDevice struct {
	running  int32   // rank, or none
	arrive   float64 // earliest arrival not taken in yet
	since    float64 // of an idle device: when it became idle
	slack    float64 // how long it may be idle yet
	received int64   // bytes
}

// stepTransfer is a message on its way to one device.
type stepTransfer struct {
	end     float64
	message int32 // where it is in the program
	next    int32 // of the same inbox, or none
}

// stepInbox is an inbox of which only arrivals are read.
type stepInbox struct {
	arriveAt     float64
	arrive, last int32
}

// run simulates the step and returns its length; ok is false where it has given up
// because the step takes longer than limit.
//
// The device of the earliest event goes on alone until it is about to send something
// later than another device's next event, or until another device might send it
// something: that device's own next event and the latency of a route come first.
func (x *stepper) run(limit float64) (makespan float64, ok bool) {
	if !x.reset(limit) {
		return 0, false
	}
	for {
		d, key := x.next()
		if key == never {
			break
		}
		x.key[d] = never
		if !x.advance(d, math.Float64frombits(key), math.Float64frombits(x.earliest())) {
			return 0, false
		}
	}
	return x.ended(x.t.n), true
}

// ended returns the length of a step of n ops that has ended.
func (x *stepper) ended(n int) (makespan float64) {
	if x.started != n {
		panic(fmt.Sprintf("sim: %d of %d ops never ran", n-x.started, n))
	}
	for d := range x.devs {
		makespan = max(makespan, x.devs[d].since)
	}
	return makespan
}

// reset prepares a run; it is false where a device has more work than limit.
func (x *stepper) reset(limit float64) bool {
	if !x.rewind(limit) {
		return false
	}
	for _, r := range x.sources {
		x.wake(r)
	}
	return true
}

// wake queues r, which waits for nothing.
func (x *stepper) wake(r int32) {
	d := x.waits[r] & deviceMask
	x.queues[d].push(r)
	x.key[d] = 0 // an event at time 0, when the device is still idle
}

// rewind is reset before anything is queued.
func (x *stepper) rewind(limit float64) bool {
	limit += limit * x.rounding
	for d := range x.devs {
		slack := limit - float64(x.held[d].work)/x.scale
		if slack < 0 {
			return false
		}
		x.devs[d] = stepDevice{running: none, arrive: inf, slack: slack}
		x.key[d] = never
		if q := &x.queues[d]; q.lowest != empty {
			q.clear()
		}
	}
	copy(x.waits, x.start)
	for k := range x.inboxes {
		x.inboxes[k] = stepInbox{inf, none, none}
	}
	clear(x.linkFree)
	x.transfers, x.started = x.transfers[:0], 0
	return true
}

// earliest returns the lowest key.
func (x *stepper) earliest() uint64 {
	k := &x.key
	key := min(k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7])
	for e := 8; e < x.t.d; e++ {
		key = min(key, k[e])
	}
	return key
}

// next is Simulator.next.
func (x *stepper) next() (d int, key uint64) {
	key, d = x.earliest(), none
	for e := range x.t.d {
		if x.key[e] == key && (d == none || x.op(e) < x.op(d)) {
			d = e
		}
	}
	return d, key
}

// op returns the op that device d runs, or none.
func (x *stepper) op(d int) int32 {
	if r := x.devs[d].running; r != none {
		return x.ids[r]
	}
	return none
}

// advance runs device d from its event at time t on; other is the time of the earliest
// event of the other devices. It is false where the device has been idle for too long.
func (x *stepper) advance(d int, t, other float64) bool {
	dev, q := &x.devs[d], &x.queues[d]
	waits, rows, consumers, times, ready := x.waits, x.ops, x.consumers, x.times, uint32(d)
	if x.seconds != nil {
		times = x.seconds[d]
	}
	running, since, horizon := dev.running, dev.since, other+x.latency
	for {
		if dev.arrive <= t {
			x.arrivals(d, t, x.receive)
		}
		best, sent := int32(empty), false
		if running != none {
			since = t
			row := rows[running]
			if sent = row.sends(); sent {
				best = x.complete(d, running, t)
			} else {
				for _, v := range consumers[row.consumers:rows[running+1].consumers] {
					y := waits[v] - 1<<deviceBits
					if waits[v] = y; y == ready {
						best = q.take(v, best)
					}
				}
			}
		}
		if q.lowest < best {
			if best != empty {
				q.push(best)
			}
			best = q.pop()
		}
		if best == empty {
			running, t = none, dev.arrive
		} else {
			if since < t {
				if dev.slack -= t - since; dev.slack < 0 {
					return false
				}
			}
			row := rows[best]
			x.order[x.started] = best
			x.started++
			running, t = best, t+times[row.time>>1]
			if row.sends() && t >= other {
				break
			}
		}
		if sent || t >= horizon {
			break
		}
	}
	dev.running, dev.since = running, since
	x.key[d] = math.Float64bits(t)
	return true
}

// complete is Simulator.complete: it ends the op of rank r, which device d runs, and
// returns the lowest rank of those that it makes ready, which it does not queue.
func (x *stepper) complete(d int, r int32, t float64) (best int32) {
	best = empty
	program, waits, q := x.program, x.waits, &x.queues[d]
	p, end := int(x.programAt[r]), int(x.programAt[r+1])
	for m := x.t.first[x.ids[r]]; p < end; m++ {
		at, users := p, program[p:p+1]
		if w := program[p]; w >= 0 {
			users = program[p+1 : p+1+int(w)]
			p += int(w)
		}
		p++
		remote := uint64(0)
		for _, v := range users {
			v ^= v >> 31 // ^v of a single consumer
			y := waits[v]
			if e := int(y & deviceMask); e != d {
				remote |= 1 << e
				continue
			}
			y -= 1 << deviceBits
			if waits[v] = y; y < 1<<deviceBits {
				best = q.take(v, best)
			}
		}
		for ; remote != 0; remote &= remote - 1 {
			x.send(x.t.messages[m].size, int32(at), d, bits.TrailingZeros64(remote), t)
		}
	}
	return best
}

// take makes the op of rank r ready. It queues that or, if r is the lowest so far, best,
// and returns the other.
func (q *rankQueue) take(r, best int32) int32 {
	if best == empty {
		return r
	}
	q.push(max(r, best))
	return min(r, best)
}

// send reserves the route of a message of size, which is at p in the program and ready at
// time t.
func (x *stepper) send(size int64, p int32, src, dst int, t float64) {
	r := &x.t.routes[src*x.t.d+dst]
	start := t
	hops := x.t.hops[r.first:r.end]
	for _, l := range hops {
		start = max(start, x.linkFree[l])
	}
	end := start + r.seconds(size)
	for _, l := range hops {
		x.linkFree[l] = end
	}
	id := int32(len(x.transfers))
	x.transfers = append(x.transfers, stepTransfer{end, p, none})
	to, in := &x.devs[dst], &x.inboxes[r.inbox]
	to.received += size
	if in.last != none {
		x.transfers[in.last].next = id
	}
	in.last = id
	if in.arrive == none {
		in.arrive, in.arriveAt = id, end
		if end < to.arrive {
			to.arrive = end
			if to.running == none {
				x.key[dst] = min(x.key[dst], math.Float64bits(end))
			}
		}
	}
}

// arrivals takes in the transfers that have reached device d by time t: receive counts what
// each of them brings.
func (x *stepper) arrivals(d int, t float64, receive func(d int, message int32)) {
	next := inf
	boxes := x.inboxes[x.t.inboxAt[d]:x.t.inboxAt[d+1]]
	for k := range boxes {
		in := &boxes[k]
		for in.arriveAt <= t {
			y := &x.transfers[in.arrive]
			receive(d, y.message)
			in.arrive, in.arriveAt = y.next, inf
			if y.next != none {
				in.arriveAt = x.transfers[y.next].end
			}
		}
		next = min(next, in.arriveAt)
	}
	x.devs[d].arrive = next
}

// receive counts the message at p in the program for its consumers on device d.
func (x *stepper) receive(d int, p int32) {
	users := x.program[p : p+1]
	if w := users[0]; w >= 0 {
		users = x.program[p+1 : p+1+w]
	}
	for _, v := range users {
		v ^= v >> 31
		y := x.waits[v]
		if int(y&deviceMask) != d {
			continue
		}
		y -= 1 << deviceBits
		if x.waits[v] = y; y < 1<<deviceBits {
			x.queues[d].push(v)
		}
	}
}
