package schedule

import (
	"placer/graph"
	"placer/hw"
	"placer/units"
)

// Arrivals are the times at which tensors get to devices in a schedule that is
// made node by node: links serve transfers in the order in which they are sent.
type Arrivals struct {
	machine *hw.Machine
	at      []float64 // [T*D] seconds; 0 while not sent
	links   []float64 // [links] seconds from when on each is free
}

// NewArrivals returns those of a schedule of n tensors on m.
func NewArrivals(m *hw.Machine, n int) *Arrivals {
	return &Arrivals{m, make([]float64, n*m.NumDevices()), make([]float64, len(m.Links))}
}

// Reset begins a schedule.
func (a *Arrivals) Reset() {
	clear(a.at)
	clear(a.links)
}

// Sent reports whether tensor t was sent to device to.
func (a *Arrivals) Sent(t graph.TensorID, to int) bool {
	return a.at[int(t)*a.machine.NumDevices()+to] > 0
}

// When returns when tensor t, of that size, made on device from at a time, is on
// device to, another one. With send it is sent there, if it was not.
func (a *Arrivals) When(t graph.TensorID, size units.Bytes, from int, made float64, to int, send bool) float64 {
	k := int(t)*a.machine.NumDevices() + to
	if a.at[k] > 0 {
		return a.at[k]
	}
	start, route := made, a.machine.Route(from, to)
	for _, l := range route {
		start = max(start, a.links[l])
	}
	end := start + float64(a.machine.TransferSeconds(from, to, size))
	if send {
		a.at[k] = end
		for _, l := range route {
			a.links[l] = end
		}
	}
	return end
}
