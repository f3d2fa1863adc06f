package sim

import (
	"fmt"
	"math"
)

// Copies that occupy the sender (docs/adr/0027-copies-that-occupy-the-sender.md).
//
// When an op ends, its device copies each output that other devices read, by
// tensor id, one after another, before its next op. A copy takes latency and bytes
// over bandwidth of its route, of the slowest where several devices read it, and
// serves them all. The tensor is on a device delivery after the end of its copy.
// The first op there that reads it takes its receipt longer. Links hold nothing
// up. A control dependency holds between ops of one device alone.
//
// The event loop visits every instant in order, as that of fair sharing does.

// sending is what copies that occupy the sender add to a simulator.
type sending struct {
	events   heap[copyEvent]
	had      []uint64  // [messages] set of the devices that have read it
	receipts []float64 // [N] seconds of each op spent on what it is first to read
}

// copyEvent is the next thing that happens to a transfer; the first is that of the
// earliest time, then of the lowest transfer.
type copyEvent struct {
	at       float64
	transfer int32
	stage    copyStage
}

type copyStage uint8

const (
	copyStarts copyStage = iota
	copyEnds
	copyArrives
)

// receipt is what a route costs behind the copy.
type receipt struct {
	delivery  float64
	seconds   float64
	bandwidth float64 // or +Inf
}

func (r *receipt) takes(bytes int64) float64 { return r.seconds + float64(bytes)/r.bandwidth }

func newSending(t *tables) *sending {
	return &sending{
		events:   make([]copyEvent, 0, t.maxSends),
		had:      make([]uint64, cap(t.messages)),
		receipts: make([]float64, t.n),
	}
}

// readReceipts reads what routes cost behind the copy.
func (t *tables) readReceipts() error {
	if t.cfg.Contention != FIFO {
		return fmt.Errorf("simulator: transfers occupy the sender on machine %s, which contention %v cannot say; want %v", t.m.Name, t.cfg.Contention, FIFO)
	}
	t.receipts = make([]receipt, t.d*t.d)
	for s := range t.d {
		for e := range t.d {
			x := t.m.EndCosts(s, e)
			r := receipt{float64(x.Delivery), float64(x.Receive), inf}
			if x.ReceiveBandwidth > 0 {
				r.bandwidth = float64(x.ReceiveBandwidth)
			}
			t.receipts[s*t.d+e] = r
		}
	}
	return nil
}

// layReads lists the messages of tensors that each op reads, ascending.
func (t *tables) layReads() {
	t.readAt = t.readAt[:t.n+1]
	clear(t.readAt)
	for i := range t.messages {
		if m := &t.messages[i]; m.tensor != none {
			for _, v := range t.use[m.first:m.end] {
				t.readAt[v]++
			}
		}
	}
	at := int32(0)
	for i := range t.readAt {
		at += t.readAt[i]
		t.readAt[i] = at
	}
	t.reads = t.reads[:at]
	for i := len(t.messages) - 1; i >= 0; i-- {
		if m := &t.messages[i]; m.tensor != none {
			for _, v := range t.use[m.first:m.end] {
				t.readAt[v]--
				t.reads[t.readAt[v]] = int32(i)
			}
		}
	}
}

// waiveControl lets ops start without word from other devices.
func (s *Simulator) waiveControl() {
	for k := range s.messages {
		m := &s.messages[k]
		if m.tensor != none {
			continue
		}
		d := s.state[s.producer[k]].waits & deviceMask
		for _, v := range s.use[m.first:m.end] {
			x := &s.state[v]
			if e := x.waits & deviceMask; e != d {
				x.waits -= 1 << deviceBits
				if x.waits < 1<<deviceBits {
					s.ready(int(e), v, 0)
				}
			}
		}
	}
}

// runSending is runQueued where copies occupy the sender. A device without a
// running op whose key is set is busy with copies until then.
func (s *Simulator) runSending(makespan *float64) (started int) {
	c := s.sending
	for {
		t := s.nextSending()
		if t == inf {
			return started
		}
		for len(c.events) > 0 && c.events[0].at == t {
			s.copyEvent(c.events.pop())
		}
		for {
			d, key := s.next()
			if math.Float64frombits(key) > t || key == never {
				break
			}
			dev := &s.devs[d]
			s.key[d] = never
			if dev.running == none {
				continue
			}
			dev.advance(t)
			*makespan = t
			sent := len(s.transfers)
			if best := s.complete(d, t); best != empty {
				s.ranked[d].push(best)
			}
			dev.running = none
			s.copyOut(d, t, sent)
		}
		for d := range s.devs {
			if s.devs[d].running == none && s.key[d] == never {
				s.devs[d].advance(t)
				started += s.dispatchReader(d, t)
			}
		}
	}
}

func (s *Simulator) nextSending() float64 {
	_, key := s.next()
	t := math.Float64frombits(key)
	if c := s.sending; len(c.events) > 0 {
		t = min(t, c.events[0].at)
	}
	return t
}

// dispatchReader is dispatch of an op that takes longer by what it is the first
// to read on device d.
func (s *Simulator) dispatchReader(d int, t float64) int {
	if s.dispatch(d, t, empty) == 0 {
		return 0
	}
	i := s.devs[d].running
	c, took := s.sending, 0.0
	for _, m := range s.reads[s.readAt[i]:s.readAt[i+1]] {
		src := int(s.state[s.producer[m]].waits & deviceMask)
		if src != d && c.had[m]>>d&1 == 0 {
			c.had[m] |= 1 << d
			took += s.receipts[src*s.d+d].takes(s.messages[m].size)
		}
	}
	c.receipts[i] = took
	if took > 0 {
		s.key[d] = math.Float64bits(t + (took + s.takes(d, i)))
	}
	return 1
}

// sendCopy notes that device dst reads message m; copyOut says when it is copied.
func (s *Simulator) sendCopy(m int32, size int64, dst int) {
	if s.messages[m].tensor != none {
		s.transfers = append(s.transfers, transfer{0, 0, size, uint32(m)<<deviceBits | uint32(dst), none, none})
	}
}

// copyOut makes the copies of the op that device d has ended at time t: the
// transfers from number k on.
func (s *Simulator) copyOut(d int, t float64, k int) {
	for k < len(s.transfers) {
		m, end, took := s.transfers[k].message(), k, 0.0
		for ; end < len(s.transfers) && s.transfers[end].message() == m; end++ {
			x := &s.transfers[end]
			took = max(took, s.routes[d*s.d+x.dst()].seconds(x.size))
		}
		for ; k < end; k++ {
			x := &s.transfers[k]
			x.start, x.end = t, t+took
			s.sending.events.push(copyEvent{t, int32(k), copyStarts})
		}
		t += took
		s.key[d] = math.Float64bits(t)
	}
}

// copyEvent takes a transfer one stage on: it occupies the receiver's memory from
// the start of the copy on, and the sender's to its end.
func (s *Simulator) copyEvent(e copyEvent) {
	x := &s.transfers[e.transfer]
	src, dst := s.sender(x), x.dst()
	switch e.stage {
	case copyStarts:
		s.devs[dst].advance(e.at)
		s.devs[dst].bytes += x.size
		s.sending.events.push(copyEvent{x.end, e.transfer, copyEnds})
	case copyEnds:
		s.devs[src].advance(e.at)
		s.released(&s.devs[src], src, x)
		s.sending.events.push(copyEvent{x.end + s.receipts[src*s.d+dst].delivery, e.transfer, copyArrives})
	case copyArrives:
		s.receive(dst, x.message(), e.at)
	}
}

func (e copyEvent) before(f copyEvent) bool { //nolint:unused // heap calls it
	return e.at < f.at || e.at == f.at && e.transfer < f.transfer
}
