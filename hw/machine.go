package hw

import (
	"fmt"
	"maps"
	"slices"

	"placer/units"
)

// Kind says what a device is.
type Kind string

// Kinds of devices.
const (
	GPU Kind = "gpu"
	CPU Kind = "cpu"
)

const (
	// MaxDevices bounds D.
	MaxDevices = 1024
	// MaxPlaced bounds the devices that ops are placed on one by one, so that sets of devices fit
	// one machine word.
	MaxPlaced = 64
)

// Device is one processor with its own memory.
type Device struct {
	Name   string      `json:"name"`  // "gpu:0", unique in the machine
	Model  string      `json:"model"` // "P100-PCIE-16GB"; equal models have equal figures
	Kind   Kind        `json:"kind"`
	Memory units.Bytes `json:"memory"` // usable by a plan
	// Capacity is what the device has: Memory plus the reserve for the driver's
	// context and the libraries. Zero where only Memory is known.
	Capacity units.Bytes `json:"capacity"`
	// Arch selects the efficiency constants of package roofline: "sm_60", "sm_90",
	// "avx2"; empty or unknown ones get those of Kind.
	Arch string `json:"arch"`
	// L2 is the last-level cache; zero where unknown.
	L2 units.Bytes `json:"l2"`
	// MemoryBandwidth is the peak of the data sheet; what kernels achieve of it is
	// in package roofline.
	MemoryBandwidth units.BytesPerSecond `json:"memory_bandwidth"`
	// SharedMemoryBandwidth is what the device streams while another does too; zero
	// where unknown. No prediction uses it.
	SharedMemoryBandwidth units.BytesPerSecond `json:"shared_memory_bandwidth,omitempty"`
	// Peak is the arithmetic peak by element type name ("f32", "bf16", ...); an
	// absent type runs at the f32 rate.
	Peak map[string]units.FLOPsPerSecond `json:"peak"`
	// Launch is the time from one kernel's end to the next one's start.
	Launch units.Seconds `json:"launch"`
	// GraphLaunch is the same within a captured graph; zero where unknown.
	GraphLaunch units.Seconds `json:"graph_launch,omitempty"`
	// SMs is the number of multiprocessors (cores of a CPU), for tile quantisation.
	SMs    int    `json:"sms"`
	Source string `json:"source"` // where the figures come from
	// Calibration, if not nil, replaces constants of package roofline.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Link is one direction of a connection.
type Link struct {
	Name      string               `json:"name"`
	Bandwidth units.BytesPerSecond `json:"bandwidth"` // achieved
	Latency   units.Seconds        `json:"latency"`   // above zero
	EndCosts
	Medium
	Source string `json:"source"`
}

// Machine is a set of devices and the routes between them. It does not change
// after Check.
type Machine struct {
	Name    string
	Note    string   // what it stands for, for the reader
	Devices []Device // [D]
	Links   []Link
	// Routes[src*D+dst] lists the links of the route, in order; empty for
	// src == dst.
	Routes [][]int32 // [D*D]
}

// SameFigures reports whether d and e differ in nothing but their name.
func (d *Device) SameFigures(e *Device) bool {
	return d.Model == e.Model && d.Kind == e.Kind && d.Memory == e.Memory && d.Capacity == e.Capacity && d.Arch == e.Arch && d.L2 == e.L2 &&
		d.MemoryBandwidth == e.MemoryBandwidth && d.SharedMemoryBandwidth == e.SharedMemoryBandwidth && d.Launch == e.Launch && d.GraphLaunch == e.GraphLaunch && d.SMs == e.SMs && d.Source == e.Source && maps.Equal(d.Peak, e.Peak) &&
		d.Calibration.equal(e.Calibration)
}

// Captured returns m as a step that is one captured graph finds it: what a kernel
// costs there in place of Launch, on devices that tell. It shares m's links and
// routes.
func (m *Machine) Captured() *Machine {
	c := *m
	c.Devices = slices.Clone(m.Devices)
	for i := range c.Devices {
		if d := &c.Devices[i]; d.GraphLaunch > 0 {
			d.Launch = d.GraphLaunch
		}
	}
	return &c
}

// NumDevices returns D.
func (m *Machine) NumDevices() int { return len(m.Devices) }

// Route returns the links from device src to device dst.
func (m *Machine) Route(src, dst int) []int32 { return m.Routes[src*len(m.Devices)+dst] }

// Transfer returns latency and bandwidth of the route from src to dst: the sum
// of its links' latencies and the lowest of their bandwidths.
func (m *Machine) Transfer(src, dst int) (latency units.Seconds, bandwidth units.BytesPerSecond) {
	for k, l := range m.Route(src, dst) {
		latency += m.Links[l].Latency
		if b := m.Links[l].Bandwidth; k == 0 || b < bandwidth {
			bandwidth = b
		}
	}
	return latency, bandwidth
}

// TransferSeconds returns the time that b bytes hold the route from src to dst;
// 0 when src == dst.
func (m *Machine) TransferSeconds(src, dst int, b units.Bytes) units.Seconds {
	if src == dst {
		return 0
	}
	latency, bandwidth := m.Transfer(src, dst)
	return latency + b.Over(bandwidth)
}

// Check reports the first broken invariant: at least one device and at most
// MaxDevices, positive figures, a route of existing links for every pair.
func (m *Machine) Check() error {
	d := len(m.Devices)
	if d < 1 || d > MaxDevices {
		return fmt.Errorf("machine %s: %d devices, want 1 to %d", m.Name, d, MaxDevices)
	}
	names := map[string]bool{}
	for i, v := range m.Devices {
		switch {
		case v.Name == "" || names[v.Name]:
			return fmt.Errorf("machine %s: device %d: name %q is empty or taken", m.Name, i, v.Name)
		case v.Kind != GPU && v.Kind != CPU:
			return fmt.Errorf("machine %s: device %s: kind %q, want gpu or cpu", m.Name, v.Name, v.Kind)
		case v.Memory <= 0 || !(v.MemoryBandwidth > 0) || !(v.Peak["f32"] > 0) || !(v.Launch >= 0) || !(v.GraphLaunch >= 0) || v.SMs < 1:
			return fmt.Errorf("machine %s: device %s: memory, memory_bandwidth, peak f32 and sms must be positive, launch not negative", m.Name, v.Name)
		case v.SharedMemoryBandwidth != 0 && !plausibleRate(v.SharedMemoryBandwidth):
			return fmt.Errorf("machine %s: device %s: shared_memory_bandwidth is %v, want %v to %v", m.Name, v.Name, v.SharedMemoryBandwidth, leastRate, mostRate)
		}
		names[v.Name] = true
	}
	for i, l := range m.Links {
		if !(l.Bandwidth > 0) || !(l.Latency > 0) {
			return fmt.Errorf("machine %s: link %d (%s): bandwidth and latency must be positive", m.Name, i, l.Name)
		}
		if err := l.EndCosts.check(l.Bandwidth, l.Latency); err != nil {
			return fmt.Errorf("machine %s: link %d (%s): %w", m.Name, i, l.Name, err)
		}
		if err := l.Medium.check(); err != nil {
			return fmt.Errorf("machine %s: link %d (%s): %w", m.Name, i, l.Name, err)
		}
		if l.Occupies != m.Links[0].Occupies {
			return fmt.Errorf("machine %s: transfers occupy the sender on link %s or %s, not on the other; want all links alike", m.Name, m.Links[0].Name, l.Name)
		}
	}
	if len(m.Routes) != d*d {
		return fmt.Errorf("machine %s: %d routes, want %d", m.Name, len(m.Routes), d*d)
	}
	for s := range d {
		for t := range d {
			r := m.Route(s, t)
			if (s == t) != (len(r) == 0) {
				if s == t {
					return fmt.Errorf("machine %s: the route from %s to itself has %d links, want none", m.Name, m.Devices[s].Name, len(r))
				}
				return fmt.Errorf("machine %s: %s cannot reach %s: no cables, links or route join them", m.Name, m.Devices[s].Name, m.Devices[t].Name)
			}
			for _, l := range r {
				if l < 0 || int(l) >= len(m.Links) {
					return fmt.Errorf("machine %s: route from %s to %s: link %d does not exist", m.Name, m.Devices[s].Name, m.Devices[t].Name, l)
				}
			}
		}
	}
	return nil
}
