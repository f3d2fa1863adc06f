package hw

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/units"
)

func devices(n int) (d []Device) {
	names, err := expand("gpu:[0-15]")
	if err != nil {
		panic(err)
	}
	for _, name := range names[:n] {
		d = append(d, Device{Name: name, Model: "G", Kind: GPU, Memory: 16e9, MemoryBandwidth: 700e9, Peak: map[string]units.FLOPsPerSecond{"f32": 9e12}, SMs: 56})
	}
	return d
}

func cable(a, b string, gbs, us float64) Cable {
	return Cable{A: a, B: b, Bandwidth: units.BytesPerSecond(gbs * 1e9), Latency: units.Seconds(us * 1e-6)}
}

// names returns the route as the names of its links.
func (m *Machine) names(s, t int) string {
	var n []string
	for _, l := range m.Route(s, t) {
		n = append(n, m.Links[l].Name)
	}
	return strings.Join(n, " ")
}

func TestConnect(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		cables []Cable
		want   map[[2]int]string
	}{
		{"switch", 2, []Cable{cable("gpu:0", "sw", 11, 5), cable("gpu:1", "sw", 11, 5)},
			map[[2]int]string{{0, 1}: "gpu:0>sw sw>gpu:1", {1, 0}: "gpu:1>sw sw>gpu:0", {0, 0}: ""}},
		{"direct link beats the shorter latency of a slow switch", 2, []Cable{cable("gpu:0", "sw", 11, 1), cable("gpu:1", "sw", 11, 1), cable("gpu:0", "gpu:1", 45, 8)},
			map[[2]int]string{{0, 1}: "gpu:0>gpu:1"}},
		{"two sockets", 4, []Cable{cable("gpu:0", "s0", 11, 5), cable("gpu:1", "s0", 11, 5), cable("gpu:2", "s1", 11, 5), cable("gpu:3", "s1", 11, 5), cable("s0", "s1", 9, 3)},
			map[[2]int]string{{0, 1}: "gpu:0>s0 s0>gpu:1", {0, 3}: "gpu:0>s0 s0>s1 s1>gpu:3", {3, 0}: "gpu:3>s1 s1>s0 s0>gpu:0"}},
		{"no way through a device", 3, []Cable{cable("gpu:0", "gpu:1", 45, 1), cable("gpu:1", "gpu:2", 45, 1), cable("gpu:0", "sw", 1, 50), cable("gpu:2", "sw", 1, 50)},
			map[[2]int]string{{0, 2}: "gpu:0>sw sw>gpu:2", {0, 1}: "gpu:0>gpu:1"}},
		{"equal paths: the lower links", 2, []Cable{cable("gpu:0", "a", 11, 5), cable("gpu:1", "a", 11, 5), cable("gpu:0", "b", 11, 5), cable("gpu:1", "b", 11, 5)},
			map[[2]int]string{{0, 1}: "gpu:0>a a>gpu:1", {1, 0}: "gpu:1>a a>gpu:0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &Machine{Name: "m", Devices: devices(c.n)}
			if err := m.Connect(c.cables); err != nil {
				t.Fatal(err)
			}
			for k, want := range c.want {
				if got := m.names(k[0], k[1]); got != want {
					t.Errorf("route from %d to %d is %q, want %q", k[0], k[1], got, want)
				}
			}
			if len(m.Links) != 2*len(c.cables) {
				t.Errorf("%d links of %d cables", len(m.Links), len(c.cables))
			}
		})
	}
}

func TestConnectLeavesIslandsToCheck(t *testing.T) {
	m := &Machine{Name: "m", Devices: devices(3)}
	if err := m.Connect([]Cable{cable("gpu:0", "gpu:1", 45, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err == nil || !strings.Contains(err.Error(), "gpu:0 cannot reach gpu:2") {
		t.Errorf("error %v, want the missing route by name", err)
	}
	if err := m.Connect([]Cable{cable("gpu:0", "gpu:0", 45, 1)}); err == nil {
		t.Error("joined a device to itself")
	}
}

// Against every simple path through switches, enumerated.
func TestConnectFindsTheBestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "devices")
		ends := []string{"s0", "s1", "s2"}
		for _, d := range devices(n) {
			ends = append(ends, d.Name)
		}
		var cables []Cable
		for i := range ends {
			for j := range i {
				if rapid.Bool().Draw(t, "joined") {
					cables = append(cables, cable(ends[i], ends[j], float64(rapid.IntRange(1, 50).Draw(t, "GB/s")), float64(rapid.IntRange(1, 20).Draw(t, "us"))))
				}
			}
		}
		m := &Machine{Name: "m", Devices: devices(n)}
		if err := m.Connect(cables); err != nil {
			t.Fatal(err)
		}
		weight := func(l int32) float64 {
			return float64(m.Links[l].Latency + routeBytes.Over(m.Links[l].Bandwidth))
		}
		var best func(at, to string, seen []string) float64
		best = func(at, to string, seen []string) float64 {
			if at == to {
				return 0
			}
			if len(seen) > 0 && strings.HasPrefix(at, "gpu") {
				return 1e9 // a third device
			}
			least := 1e9
			for k, c := range cables {
				for _, way := range [][2]string{{c.A, c.B}, {c.B, c.A}} {
					if way[0] == at && !slices.Contains(seen, way[1]) && way[1] != at {
						least = min(least, weight(int32(2*k))+best(way[1], to, append(slices.Clone(seen), at)))
					}
				}
			}
			return least
		}
		for s := range n {
			for d := range n {
				if s == d {
					continue
				}
				want, got := best(m.Devices[s].Name, m.Devices[d].Name, nil), 0.0
				for _, l := range m.Route(s, d) {
					got += weight(l)
				}
				if len(m.Route(s, d)) == 0 {
					got = 1e9
				}
				if diff := got - want; want < 1e9 && (diff > 1e-12 || diff < -1e-12) || want >= 1e9 && got < 1e9 {
					t.Fatalf("route %q takes %g, the best path %g", m.names(s, d), got, want)
				}
			}
		}
	})
}
