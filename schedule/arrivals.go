package schedule

import (
	"placer/graph"
	"placer/hw"
	"placer/units"
)

// Arrivals are the times at which tensors get to devices in a schedule that is
// made node by node: links serve transfers in the order in which they are sent.
// Where copies occupy the sender (docs/adr/0027-copies-that-occupy-the-sender.md)
// there is one copy for all readers, copies of a device follow one another, and a
// tensor has arrived when it was received; that the sender's ops wait for the copies,
// and the receiver's for receipts, is left out.
type Arrivals struct {
	machine *hw.Machine
	devices int
	routes  []route   // [D*D]
	at      []float64 // [T*D] seconds; 0 while not sent
	links   []float64 // [links] seconds from when on each is free
	copied  []float64 // [T] end of the copy, where copies occupy the sender; 0: none
	sender  []float64 // [D] end of the device's last copy, likewise
}

// route is the way from one device to another.
type route struct {
	links     []int32
	latency   units.Seconds
	bandwidth units.BytesPerSecond
}

// seconds returns the time that b bytes hold the route.
func (r *route) seconds(b units.Bytes) float64 { return float64(r.latency + b.Over(r.bandwidth)) }

// NewArrivals returns those of a schedule of n tensors on m.
func NewArrivals(m *hw.Machine, n int) *Arrivals {
	d := m.NumDevices()
	a := &Arrivals{machine: m, devices: d, routes: make([]route, d*d), at: make([]float64, n*d), links: make([]float64, len(m.Links))}
	for from := range d {
		for to := range d {
			if r := &a.routes[from*d+to]; from != to {
				r.links = m.Route(from, to)
				r.latency, r.bandwidth = m.Transfer(from, to)
			}
		}
	}
	if m.OccupiesSender() {
		a.copied, a.sender = make([]float64, n), make([]float64, m.NumDevices())
	}
	return a
}

// Reset begins a schedule.
func (a *Arrivals) Reset() {
	clear(a.at)
	clear(a.links)
	clear(a.copied)
	clear(a.sender)
}

// Receipt returns how much longer the first op on device to takes that reads b bytes
// of device from; 0 where copies do not occupy the sender.
func Receipt(m *hw.Machine, from, to int, b units.Bytes) float64 {
	x := m.EndCosts(from, to)
	s := float64(x.Receive)
	if x.ReceiveBandwidth > 0 {
		s += float64(b) / float64(x.ReceiveBandwidth)
	}
	return s
}

// Sent reports whether tensor t was sent to device to.
func (a *Arrivals) Sent(t graph.TensorID, to int) bool {
	return a.at[int(t)*a.devices+to] > 0
}

// When returns when tensor t, of that size, made on device from at a time, is on
// device to, another one. With send it is sent there, if it was not.
func (a *Arrivals) When(t graph.TensorID, size units.Bytes, from int, made float64, to int, send bool) float64 {
	k := int(t)*a.devices + to
	if a.at[k] > 0 {
		return a.at[k]
	}
	if a.sender != nil {
		return a.copy(t, size, from, made, to, send)
	}
	start, r := made, &a.routes[from*a.devices+to]
	for _, l := range r.links {
		start = max(start, a.links[l])
	}
	end := start + r.seconds(size)
	if send {
		a.at[k] = end
		for _, l := range r.links {
			a.links[l] = end
		}
	}
	return end
}

// Ready returns when the operands of node v of g are on device to. Node i belongs to unit
// of[i], which is on device at[unit], below 0 for none, whose results are not waited for;
// finish is when each node has ended, in seconds. With send it sends what is not there.
func (a *Arrivals) Ready(g *graph.Graph, v graph.OpID, of, at []int32, finish []float64, to int, send bool) (ready float64) {
	for _, t := range g.Inputs(v) {
		x := g.Tensor(t)
		from := int(at[of[x.Producer]])
		if from < 0 {
			continue
		}
		made := finish[x.Producer]
		if from != to {
			made = a.When(t, x.Bytes, from, made, to, send)
		}
		ready = max(ready, made)
	}
	for _, q := range g.Control(v) {
		ready = max(ready, finish[q])
	}
	return ready
}

// ReadyEverywhere writes when the operands of node v would be on each device, [D], were it
// there; the rest is as Ready has it, without send.
func (a *Arrivals) ReadyEverywhere(g *graph.Graph, v graph.OpID, of, at []int32, finish, ready []float64) {
	waits := 0.0
	for _, q := range g.Control(v) {
		waits = max(waits, finish[q])
	}
	for to := range ready {
		ready[to] = waits
	}
	for _, t := range g.Inputs(v) {
		x := g.Tensor(t)
		from := int(at[of[x.Producer]])
		if from < 0 {
			continue
		}
		made := finish[x.Producer]
		sent := a.at[int(t)*a.devices : (int(t)+1)*a.devices]
		for to := range ready {
			there := made
			if from != to {
				if there = sent[to]; there <= 0 {
					there = a.When(t, x.Bytes, from, made, to, false)
				}
			}
			ready[to] = max(ready[to], there)
		}
	}
}

// copy is When where copies occupy the sender.
func (a *Arrivals) copy(t graph.TensorID, size units.Bytes, from int, made float64, to int, send bool) float64 {
	end := a.copied[t]
	if end == 0 {
		end = max(made, a.sender[from]) + a.routes[from*a.devices+to].seconds(size)
	}
	at := end + float64(a.machine.EndCosts(from, to).Delivery) + Receipt(a.machine, from, to, size)
	if send {
		a.at[int(t)*a.devices+to] = at
		a.copied[t], a.sender[from] = end, max(a.sender[from], end)
	}
	return at
}
