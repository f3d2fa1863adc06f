package strategies

import (
	"errors"
	"fmt"

	"placer/hw"
)

// ErrSender says that strategies are not simulated where copies occupy the sender.
var ErrSender = errors.New("strategies know no copies that occupy the sender")

// errStreams says that there would be too many.
var errStreams = errors.New("devices with a stream each")

// streamsFit reports that the streams of n devices are too many.
func streamsFit(machine string, n int) error {
	if 2*n > hw.MaxPlaced {
		return fmt.Errorf("machine %s: %d %w, want at most %d", machine, n, errStreams, hw.MaxPlaced/2)
	}
	return nil
}

// Between a device and its own stream nothing is sent: a hand-over takes no time that
// counts.
const (
	handOver          = 1e-12 // s
	handOverBandwidth = 1e30  // B/s
)

// withStreams returns m with a stream for communication behind each of its D devices:
// device D+k is that of device k.
func withStreams(m *hw.Machine) (*hw.Machine, error) {
	if m.OccupiesSender() {
		return nil, fmt.Errorf("machine %s: %w", m.Name, ErrSender)
	}
	n := m.NumDevices()
	if err := streamsFit(m.Name, n); err != nil {
		return nil, err
	}
	x := &hw.Machine{Name: m.Name, Note: m.Note, Routes: make([][]int32, 4*n*n)}
	x.Devices = append(x.Devices, m.Devices...)
	x.Links = append(x.Links, m.Links...)
	local := make([][2]int32, n) // to the stream, from it
	for k, d := range m.Devices {
		for dir, name := range []string{d.Name + ">stream", "stream>" + d.Name} {
			local[k][dir] = int32(len(x.Links))
			x.Links = append(x.Links, hw.Link{Name: name, Bandwidth: handOverBandwidth, Latency: handOver, Source: "none: a hand-over"})
		}
		d.Name += "/stream"
		x.Devices = append(x.Devices, d)
	}
	for a := range 2 * n {
		for b := range 2 * n {
			if a == b {
				continue
			}
			var route []int32
			if a%n != b%n {
				route = append(route, m.Route(a%n, b%n)...)
			}
			switch {
			case a < n && b >= n:
				route = append(route, local[b-n][0])
			case a >= n && b < n:
				route = append(route, local[b][1])
			}
			x.Routes[a*2*n+b] = route
		}
	}
	return x, x.Check()
}

// Symmetric reports whether all devices and all pairs of them are alike, so that what one
// replica does every other does too.
func Symmetric(m *hw.Machine) bool {
	n := m.NumDevices()
	first := make([]ends, len(m.Links))
	for a := range n {
		if !m.Devices[a].SameFigures(&m.Devices[0]) {
			return false
		}
		for b := range n {
			if a == b {
				continue
			}
			l, w := m.Transfer(a, b)
			if l0, w0 := m.Transfer(0, 1); l != l0 || w != w0 || len(m.Route(a, b)) != len(m.Route(0, 1)) {
				return false
			}
			for _, x := range m.Route(a, b) { // links of two routes with different ends on both sides are not shared
				if !first[x].oneEnd(a, b) {
					return false
				}
			}
		}
	}
	return true
}

// ends are those of the routes that have a link.
type ends struct {
	used       bool
	from, to   int  // of the first
	froms, tos bool // others come from elsewhere, or go elsewhere
}

// oneEnd adds a route and reports whether all so far come from one device, or all go to one.
func (e *ends) oneEnd(a, b int) bool {
	if !e.used {
		*e = ends{used: true, from: a, to: b}
	}
	e.froms, e.tos = e.froms || a != e.from, e.tos || b != e.to
	return !e.froms || !e.tos
}
