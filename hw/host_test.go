package hw

import (
	"strings"
	"testing"
)

// The cable of a built-in machine's CPU is the host's memory, which all GPUs share, no slot of
// one of them: it is the narrowest link of no route. p100 is one switch with a port for each.
func TestHostMemoryIsNoSlot(t *testing.T) {
	for _, name := range Names() {
		if name == "p100" {
			continue
		}
		m, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		host := m.NumDevices() - 1
		for d := range host {
			for _, r := range [][]int32{m.Route(d, host), m.Route(host, d)} {
				narrowest := &m.Links[r[0]]
				for _, l := range r {
					if m.Links[l].Bandwidth < narrowest.Bandwidth {
						narrowest = &m.Links[l]
					}
				}
				for _, l := range r {
					x := &m.Links[l]
					if !strings.HasPrefix(x.Name, "cpu:0>") && !strings.HasSuffix(x.Name, ">cpu:0") {
						continue
					}
					if x == narrowest || x.Bandwidth <= narrowest.Bandwidth || x.Bandwidth > m.Devices[host].MemoryBandwidth {
						t.Errorf("%s: %s has %v; the route's narrowest link %v, the CPU's memory %v", name, x.Name, x.Bandwidth, narrowest.Bandwidth, m.Devices[host].MemoryBandwidth)
					}
				}
			}
		}
	}
}
