package hw

import (
	"fmt"
	"maps"
	"slices"

	"placer/units"
)

// Bounds of a device's figures, wide of any hardware.
const (
	leastFLOPs units.FLOPsPerSecond = 1
	mostFLOPs  units.FLOPsPerSecond = 1e24
	mostMemory units.Bytes          = 1 << 60
	mostSMs                         = 1 << 20
)

// limits reports the first figure of a machine file that no hardware has: below and
// above, times vanish in a step's clock or their sums are not finite.
func (m *Machine) limits() error {
	for i := range m.Devices {
		d := &m.Devices[i]
		for _, name := range slices.Sorted(maps.Keys(d.Peak)) {
			if peak := d.Peak[name]; peak < leastFLOPs || peak > mostFLOPs {
				return fmt.Errorf("device %s: peak %s is %v, want %v to %v", d.Name, name, peak, leastFLOPs, mostFLOPs)
			}
		}
		switch {
		case !plausibleRate(d.MemoryBandwidth):
			return fmt.Errorf("device %s: memory_bandwidth is %v, want %v to %v", d.Name, d.MemoryBandwidth, leastRate, mostRate)
		case max(d.Launch, d.GraphLaunch) > mostTime:
			return fmt.Errorf("device %s: launch is %v, want at most %v", d.Name, max(d.Launch, d.GraphLaunch), mostTime)
		case max(d.Capacity, d.L2) > mostMemory:
			return fmt.Errorf("device %s: capacity or l2 is %v, want at most %v", d.Name, max(d.Capacity, d.L2), mostMemory)
		case d.SMs > mostSMs:
			return fmt.Errorf("device %s: sms is %d, want at most %d", d.Name, d.SMs, mostSMs)
		}
	}
	for _, l := range m.Links {
		switch {
		case !plausibleRate(l.Bandwidth):
			return fmt.Errorf("link %s: bandwidth is %v, want %v to %v", l.Name, l.Bandwidth, leastRate, mostRate)
		case !plausibleTime(l.Latency):
			return fmt.Errorf("link %s: latency is %v, want %v to %v", l.Name, l.Latency, leastTime, mostTime)
		}
	}
	return nil
}
