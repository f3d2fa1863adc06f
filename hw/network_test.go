package hw_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"placer/hw"
	"placer/units"
)

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]hw.Network{
		"8x400Gb/s": {NICs: 8, Rate: 50e9}, "8 x 400 Gb/s": {NICs: 8, Rate: 50e9}, "100Gbps": {NICs: 1, Rate: 12.5e9}, "2x25GB/s": {NICs: 2, Rate: 25e9},
		"8xNDR": {NICs: 8, Rate: 50e9}, "hdr": {NICs: 1, Rate: 25e9}, "4xxdr": {NICs: 4, Rate: 100e9},
	} {
		if got, err := hw.ParseNetwork(text); err != nil || got != want {
			t.Errorf("%s is %+v (%v), want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "400", "8x", "x400Gb/s", "0x400Gb/s", "8x-1Gb/s", "8x0Gb/s", "8x400Mb", "65xndr", "NaNGb/s", "8x1e400Gb/s", "8x400gb/s"} {
		if n, err := hw.ParseNetwork(text); err == nil || !strings.Contains(err.Error(), "as 8x400Gb/s") {
			t.Errorf("%q is %+v (%v)", text, n, err)
		}
	}
}

// written is the machine of a template.
func written(t *testing.T, x hw.Template) *hw.Machine {
	t.Helper()
	var text bytes.Buffer
	if err := x.Write(&text); err != nil {
		t.Fatal(err)
	}
	m, err := hw.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func cardsOf(t *testing.T, name string, n int) []hw.Card {
	t.Helper()
	c, err := hw.FindCard(name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Repeat([]hw.Card{c}, n)
}

// Within a host the cables are those of the built-in machine of the card, between hosts those
// of the network: of a NIC for each GPU, the slot's where that is slower, or shared ones.
func TestClusters(t *testing.T) {
	builtin, err := hw.Load("h100")
	if err != nil {
		t.Fatal(err)
	}
	_, inside := builtin.Transfer(0, 1)
	for _, c := range []struct {
		name     string
		t        hw.Template
		a, b     int     // devices
		rate     float64 // B/s between them
		links    int     // of the route
		shared   [2]int  // of a device and another whose route to b begins with the same cables
		sharedBy int     // cables
	}{
		{"NVLink", hw.Template{Cards: cardsOf(t, "h100", 8), NVLink: true, Hosts: 2, Network: hw.Network{NICs: 8, Rate: 50e9}}, 8, 15, float64(inside), 2, [2]int{}, 0},
		{"a NIC for each", hw.Template{Cards: cardsOf(t, "h100", 8), NVLink: true, Hosts: 2, Network: hw.Network{NICs: 8, Rate: 50e9}}, 0, 8, 45e9, 2, [2]int{1, 2}, 0},
		{"two NICs for each", hw.Template{Cards: cardsOf(t, "h100", 2), NVLink: true, Hosts: 2, Network: hw.Network{NICs: 4, Rate: 12.5e9}}, 0, 2, 22.5e9, 2, [2]int{}, 0},
		{"a slot that is slower", hw.Template{Cards: cardsOf(t, "a100", 2), NVLink: true, Hosts: 2, Network: hw.Network{NICs: 2, Rate: 50e9}}, 0, 2, 0.8 * 16 * 1.969e9, 2, [2]int{}, 0},
		{"four share a NIC", hw.Template{Cards: cardsOf(t, "l40s", 8), Hosts: 3, Network: hw.Network{NICs: 2, Rate: 12.5e9}}, 0, 23, 11.25e9, 4, [2]int{0, 3}, 1},
		{"beside CPUs", hw.Template{Cards: cardsOf(t, "l40s", 2), CPU: hw.Device{Kind: hw.CPU, Model: "CPU", Arch: "avx2", Capacity: 64e9, Memory: 60e9, MemoryBandwidth: 1e11, Peak: map[string]units.FLOPsPerSecond{"f32": 1e12, "f64": 5e11}, Launch: 1e-6, SMs: 8, Source: "x"}, Hosts: 2, Network: hw.Network{NICs: 1, Rate: 12.5e9}}, 0, 3, 11.25e9, 4, [2]int{0, 1}, 1},
	} {
		c.t.Name = "cluster"
		m := written(t, c.t)
		if n := max(1, c.t.Hosts); len(m.Accelerators()) != n*len(c.t.Cards) {
			t.Errorf("%s: %d GPUs", c.name, len(m.Accelerators()))
		}
		var gpu []int
		for _, d := range m.Accelerators() {
			gpu = append(gpu, int(d))
		}
		if _, rate := m.Transfer(gpu[c.a], gpu[c.b]); float64(rate) < 0.995*c.rate || float64(rate) > 1.005*c.rate {
			t.Errorf("%s: %v, want %g B/s", c.name, rate, c.rate)
		}
		if r := m.Route(gpu[c.a], gpu[c.b]); len(r) != c.links {
			t.Errorf("%s: a route of %d links, want %d", c.name, len(r), c.links)
		}
		if c.shared != [2]int{} {
			common := 0
			for _, l := range m.Route(gpu[c.shared[0]], gpu[c.b]) {
				if slices.Contains(m.Route(gpu[c.shared[1]], gpu[c.b])[:c.links/2], l) {
					common++
				}
			}
			if common != c.sharedBy {
				t.Errorf("%s: %d links are shared, want %d", c.name, common, c.sharedBy)
			}
		}
	}
	for _, c := range []struct {
		t    hw.Template
		want string
	}{
		{hw.Template{Cards: cardsOf(t, "rtx4090", 2), NVLink: true}, "no switch of NVLink is known"},
		{hw.Template{Cards: append(cardsOf(t, "h100", 1), cardsOf(t, "a100", 1)...), NVLink: true}, "no switch of NVLink is known"},
		{hw.Template{Cards: cardsOf(t, "h100", 8), Hosts: 2, Network: hw.Network{NICs: 3, Rate: 1e9}}, "3 NICs a host cannot be shared out evenly among its 8 GPUs"},
		{hw.Template{Cards: cardsOf(t, "h100", 8), Hosts: 2}, "0 NICs a host"},
	} {
		if err := c.t.Write(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
