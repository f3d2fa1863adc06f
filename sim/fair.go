package sim

import (
	"math"
	"slices"
)

// Fair sharing is the second model of contention. A transfer starts when its
// message is ready. After the latencies of its route its bytes flow over all
// links of the route at once; the flows under way share the links' bandwidths
// max-min fairly: no flow could be faster without slowing one that is no faster.
// Rates change when a flow begins or ends, and then the bytes left of every flow
// are brought up to date. Everything else is as in doc.go; no transfer ever waits
// in a queue.
//
// The event loop visits every instant in order, at a cost that grows with the
// number of flows under way; it is several times slower than that of FIFO links.
//
// Uncontended transfers use the same loop: all of a transfer's time is its
// latency, and nothing flows.

// fairState is what fair sharing adds to a simulator.
type fairState struct {
	latent  heap[latentTransfer]
	flows   []flow    // under way
	changed bool      // flows began or ended since rates were shared out
	since   float64   // when the bytes left were last brought up to date
	room    []float64 // [L] scratch: bandwidth not shared out yet
	users   []int32   // [L] scratch: flows without a rate
}

// latentTransfer has not begun to flow; the first is that of the earliest time, then
// the lowest.
type latentTransfer struct {
	at       float64
	transfer int32
}

// flow is a transfer whose bytes are under way.
type flow struct {
	transfer int32
	fixed    bool // scratch of share
	left     float64
	rate     float64
	finish   float64
}

func newFairState(t *tables) *fairState {
	return &fairState{
		latent: make(heap[latentTransfer], 0, t.maxSends),
		flows:  make([]flow, 0, t.maxSends),
		room:   make([]float64, len(t.m.Links)),
		users:  make([]int32, len(t.m.Links)),
	}
}

// runFair is runQueued under fair sharing.
func (s *Simulator) runFair(makespan *float64) (started int) {
	f := s.fair
	for {
		t := s.nextFair()
		if t == inf {
			return started
		}
		for k := 0; k < len(f.flows); {
			if f.flows[k].finish > t {
				k++
				continue
			}
			s.deliver(f.flows[k].transfer, t)
			f.flows[k] = f.flows[len(f.flows)-1]
			f.flows = f.flows[:len(f.flows)-1]
			f.changed = true
		}
		for len(f.latent) > 0 && f.latent[0].at == t {
			x := f.latent.pop().transfer
			size := s.transfers[x].size
			if size == 0 || s.cfg.Contention == Uncontended {
				s.deliver(x, t)
				continue
			}
			f.flows = append(f.flows, flow{transfer: x, left: float64(size), finish: inf})
			f.changed = true
		}
		// Completions in the order of their ops, as everywhere.
		for {
			d, key := s.next()
			if math.Float64frombits(key) > t || key == never {
				break
			}
			s.devs[d].advance(t)
			*makespan = t
			if best := s.complete(d, t); best != empty {
				s.ranked[d].push(best)
			}
			s.devs[d].running, s.key[d] = none, never
		}
		if f.changed {
			s.share(t)
		}
		for d := range s.devs {
			if s.devs[d].running == none {
				s.devs[d].advance(t)
				started += s.dispatch(d, t, empty)
			}
		}
	}
}

func (s *Simulator) nextFair() float64 {
	_, key := s.next()
	t := math.Float64frombits(key)
	if f := s.fair; len(f.latent) > 0 {
		t = min(t, f.latent[0].at)
	}
	for k := range s.fair.flows {
		t = min(t, s.fair.flows[k].finish)
	}
	return t
}

// sendFair starts the transfer of message m, ready at time t.
func (s *Simulator) sendFair(m int32, size int64, src, dst int, t float64) {
	id := int32(len(s.transfers))
	s.transfers = append(s.transfers, transfer{t, inf, size, uint32(m)<<deviceBits | uint32(dst), none, none})
	r := &s.routes[src*s.d+dst]
	at := t + r.latency
	if s.cfg.Contention == Uncontended {
		at = t + r.seconds(size)
	}
	s.fair.latent.push(latentTransfer{at, id})
	s.devs[dst].advance(t)
	s.devs[dst].bytes += size
}

// deliver ends transfer x.
func (s *Simulator) deliver(id int32, t float64) {
	x := &s.transfers[id]
	x.end = t
	s.receive(x.dst(), x.message(), t)
	src := s.sender(x)
	s.devs[src].advance(t)
	s.released(&s.devs[src], src, x)
}

// share divides the links among the flows: the link with the least room for each
// of its flows fixes their rates, and so on with what is left.
func (s *Simulator) share(t float64) {
	f := s.fair
	f.drain(t)
	f.changed = false
	for l := range f.room {
		f.room[l], f.users[l] = float64(s.m.Links[l].Bandwidth), 0
	}
	for k := range f.flows {
		f.flows[k].fixed = false
		for _, l := range s.hopsOf(f.flows[k].transfer) {
			f.users[l]++
		}
	}
	for open := len(f.flows); open > 0; {
		tight, rate := int32(none), inf
		for l, n := range f.users {
			if n > 0 && f.room[l]/float64(n) < rate {
				tight, rate = int32(l), f.room[l]/float64(n)
			}
		}
		for k := range f.flows {
			x := &f.flows[k]
			if x.fixed || !slices.Contains(s.hopsOf(x.transfer), tight) {
				continue
			}
			x.fixed, x.rate, x.finish = true, rate, t+x.left/rate
			open--
			for _, l := range s.hopsOf(x.transfer) {
				f.room[l] -= rate
				f.users[l]--
			}
		}
	}
}

func (s *Simulator) hopsOf(transfer int32) []int32 {
	x := &s.transfers[transfer]
	r := &s.routes[s.sender(x)*s.d+x.dst()]
	return s.hops[r.first:r.end]
}

// sender returns the device that transfer x comes from.
func (s *Simulator) sender(x *transfer) int {
	return int(s.state[s.producer[x.message()]].waits & deviceMask)
}

// drain brings the bytes left of every flow up to time t. New ones have no rate
// yet.
func (f *fairState) drain(t float64) {
	for k := range f.flows {
		x := &f.flows[k]
		x.left -= float64(x.rate * (t - f.since))
	}
	f.since = t
}

func (x latentTransfer) before(y latentTransfer) bool { //nolint:unused // heap calls it
	return x.at < y.at || x.at == y.at && x.transfer < y.transfer
}
