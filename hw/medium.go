package hw

import (
	"fmt"

	"placer/units"
)

// Media that a link may be of.
const (
	NVLink  = "nvlink"
	PCIe    = "pcie"
	Between = "network" // of hosts
)

// Medium is what a link is of. Collectives choose their algorithm and protocol by it
// (docs/adr/0077-collectives-by-algorithm-and-protocol.md); copies, and so plans, know nothing of it.
// The zero value is a link of which the file does not tell.
type Medium struct {
	Medium string `json:"medium,omitempty"` // NVLink, PCIe or Between
	// CollectiveBandwidth is what kernels of a collective send over an NVLink, where that is not
	// what copies achieve; zero: the same.
	CollectiveBandwidth units.BytesPerSecond `json:"collective_bandwidth,omitempty"`
	// Sharp says that the switch at its end adds up what GPUs send it (NVLink SHARP).
	Sharp bool `json:"sharp,omitempty"`
}

// check reports facts that contradict one another.
func (m *Medium) check() error {
	switch m.Medium {
	case "", PCIe, Between:
		if m.CollectiveBandwidth != 0 || m.Sharp {
			return fmt.Errorf("collective_bandwidth and sharp are of links of medium %q, this one has %q", NVLink, m.Medium)
		}
	case NVLink:
		if r := m.CollectiveBandwidth; r != 0 && !plausibleRate(r) {
			return fmt.Errorf("collective_bandwidth is %v, want %v to %v", r, leastRate, mostRate)
		}
	default:
		return fmt.Errorf("medium is %q, want %s, %s or %s", m.Medium, NVLink, PCIe, Between)
	}
	return nil
}

// mediumKeys are the keys of a cable or link that Medium reads.
var mediumKeys = []string{"medium", "collective_bandwidth", "sharp"}

// medium reads what a cable or link says of its medium.
func (f *jsonFile) medium(v *jsonValue) Medium {
	m := Medium{Medium: f.text(v.member("medium")), CollectiveBandwidth: positive(f, v.member("collective_bandwidth"), units.ParseBytesPerSecond), Sharp: f.truth(v.member("sharp"))}
	if err := m.check(); err != nil {
		f.fail(v, "%w", err)
	}
	return m
}
