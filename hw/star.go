package hw

import (
	"fmt"

	"placer/units"
)

// Spokes are equal devices of a Star.
type Spokes struct {
	Device Device // its Name is a prefix, which spokes may share: "gpu:" gives gpu:0, gpu:1, ...
	Count  int
}

// Star returns a machine whose devices are joined by one cable each to the host's
// memory. latency must be above zero.
func Star(name, note string, spokes []Spokes, bandwidth units.BytesPerSecond, latency units.Seconds) (*Machine, error) {
	m := &Machine{Name: name, Note: note}
	var cables []Cable
	named := map[string]int{} // by prefix
	for _, s := range spokes {
		for range s.Count {
			d := s.Device
			d.Name = fmt.Sprintf("%s%d", s.Device.Name, named[s.Device.Name])
			named[s.Device.Name]++
			m.Devices = append(m.Devices, d)
			cables = append(cables, Cable{A: d.Name, B: "host memory", Bandwidth: bandwidth, Latency: latency, Source: note})
		}
	}
	if err := m.Connect(cables); err != nil {
		return nil, err
	}
	return m, m.Check()
}
