package corpus

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"placer/hw"
	"placer/internal/faults"
	"placer/units"
)

// Machine is what a machine is rebuilt from: cards in groups. Within a group each card has
// a cable to the group's switch or, in a mesh, to each other; groups hang together by
// their switches, as hosts by their network cards.
type Machine struct {
	// GPUs names the card of each device, [D], as hw.FindCard takes it.
	GPUs []string `json:"gpus"`
	// Group is the number of devices of a group; the last may have fewer.
	Group int `json:"group"`
	// Mesh joins each pair of a group's devices.
	Mesh bool `json:"mesh,omitempty"`
	// Bandwidth is that of a cable within a group, Uplink that of one to another group, in
	// GB/s; Uplink is 0 where there is one group.
	Bandwidth float64 `json:"gb_per_second"`
	Uplink    float64 `json:"uplink_gb_per_second,omitempty"`
	// Memory is the most that a plan may use of a device; 0 for what the card has.
	Memory units.Bytes `json:"memory,omitempty"`
}

// Latencies of the cables.
const (
	latency       units.Seconds = 5e-6
	uplinkLatency units.Seconds = 15e-6
)

// maxDevices bounds a machine of a corpus.
const maxDevices = 16

// Validate reports every fault.
func (m Machine) Validate() error {
	var errs faults.List
	d := len(m.GPUs)
	errs.If(d < 1 || d > maxDevices, "machine: %d GPUs, want 1 to %d", d, maxDevices)
	errs.If(m.Group < 1 || m.Group > max(d, 1), "machine: groups of %d devices, want 1 to %d", m.Group, d)
	errs.If(!(m.Bandwidth > 0) || m.Bandwidth > 1e5, "machine: gb_per_second is %g, want above 0 and at most 100000", m.Bandwidth)
	errs.If(m.Group < d && (!(m.Uplink > 0) || m.Uplink > 1e5), "machine: uplink_gb_per_second is %g, want above 0 and at most 100000", m.Uplink)
	errs.If(m.Group >= d && m.Uplink != 0, "machine: uplink_gb_per_second is %g for one group", m.Uplink)
	errs.If(m.Memory < 0, "machine: memory is %d bytes", m.Memory)
	return errors.Join(errs...)
}

// Build returns the machine.
func (m Machine) Build() (*hw.Machine, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	x := &hw.Machine{Name: m.String(), Note: "drawn for a corpus"}
	cards := map[string]hw.Card{}
	for i, name := range m.GPUs {
		card, ok := cards[name]
		if !ok {
			var err error
			if card, err = hw.FindCard(name); err != nil {
				return nil, err
			}
			cards[name] = card
		}
		v := card.Device
		v.Name = fmt.Sprintf("gpu:%d", i)
		if m.Memory > 0 {
			v.Memory = min(v.Memory, m.Memory)
		}
		x.Devices = append(x.Devices, v)
	}
	if err := x.Connect(m.cables()); err != nil {
		return nil, err
	}
	return x, x.Check()
}

// cables returns those of the groups and between them.
func (m Machine) cables() (all []hw.Cable) {
	add := func(a, b string, gb float64, l units.Seconds) {
		all = append(all, hw.Cable{A: a, B: b, Bandwidth: units.BytesPerSecond(gb * 1e9), Latency: l, Source: "drawn for a corpus"})
	}
	gpu := func(i int) string { return fmt.Sprintf("gpu:%d", i) }
	d := len(m.GPUs)
	for lo := 0; lo < d; lo += m.Group {
		hi, host := min(lo+m.Group, d), fmt.Sprintf("switch %d", lo/m.Group)
		for i := lo; i < hi; i++ {
			if !m.Mesh {
				add(gpu(i), host, m.Bandwidth, latency)
				continue
			}
			for k := i + 1; k < hi; k++ {
				add(gpu(i), gpu(k), m.Bandwidth, latency)
			}
			if m.Group < d {
				add(gpu(i), host, m.Uplink, latency)
			}
		}
		if m.Group < d {
			add(host, "network", m.Uplink, uplinkLatency)
		}
	}
	return all
}

// String is like "4 a100 + 2 v100 in groups of 3".
func (m Machine) String() string {
	var parts []string
	for lo := 0; lo < len(m.GPUs); {
		hi := lo
		for hi < len(m.GPUs) && m.GPUs[hi] == m.GPUs[lo] {
			hi++
		}
		parts = append(parts, fmt.Sprintf("%d %s", hi-lo, m.GPUs[lo]))
		lo = hi
	}
	s := strings.Join(parts, " + ")
	if m.Group < len(m.GPUs) {
		s += fmt.Sprintf(" in groups of %d", m.Group)
	}
	return s
}

// drawMachine returns a random machine of 2 to 16 devices: in three of ten of two models,
// joined by anything from PCIe to NVLink, on one host or on two.
func drawMachine(r *rand.Rand) Machine {
	d := of(r, 2, 2, 2, 3, 4, 4, 4, 4, 6, 8, 8, 8, 12, 16)
	cards := []string{"p100", "v100", "a100", "h100", "h200", "b200", "rtx3090", "rtx4090", "l4", "a10", "a6000"}
	m := Machine{GPUs: slices.Repeat([]string{of(r, cards...)}, d), Group: d}
	if r.IntN(10) < 3 {
		other := of(r, cards...)
		for i := range 1 + r.IntN(d-1) {
			m.GPUs[d-1-i] = other
		}
	}
	pcie, nvlink := of(r, 3.0, 6, 11, 12, 25, 50), of(r, 20.0, 50, 100, 226, 450)
	switch x := r.IntN(10); {
	case x < 4:
		m.Bandwidth = pcie
	case x < 6:
		m.Bandwidth = nvlink
	case x < 7:
		m.Bandwidth, m.Mesh = nvlink, true
	case d < 4:
		m.Bandwidth = of(r, pcie, nvlink)
	default:
		m.Group, m.Uplink = (d+1)/2, of(r, 1.2, 3, 6, 12, 25)
		if d >= 8 && r.IntN(3) == 0 {
			m.Group = 4
		}
		m.Bandwidth = of(r, pcie, nvlink)
		if r.IntN(3) == 0 {
			m.Bandwidth, m.Mesh = nvlink, true
		}
	}
	return m
}

// of returns one of xs.
func of[T any](r *rand.Rand, xs ...T) T { return xs[r.IntN(len(xs))] }
