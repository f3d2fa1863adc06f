package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"placer/hw"
)

// MachinesFormat names the version of Machines as a JSON document.
const MachinesFormat = "placer machines 1"

// Machines lists machines.
type Machines struct {
	Format   string           `json:"format"`
	Machines []MachineSummary `json:"machines"`
}

// MachineSummary describes a machine.
type MachineSummary struct {
	Name    string   `json:"name"`
	Devices []device `json:"devices"`
	Links   int      `json:"links"`
	// Slowest and fastest route between two GPUs, in bytes a second; 0 for fewer
	// than two.
	SlowestRoute float64 `json:"slowest_route_bytes_per_s"`
	FastestRoute float64 `json:"fastest_route_bytes_per_s"`
}

// device describes a device.
type device struct {
	Name            string             `json:"name"`
	Model           string             `json:"model"`
	Kind            hw.Kind            `json:"kind"`
	Memory          int64              `json:"memory_bytes"`
	MemoryBandwidth float64            `json:"memory_bandwidth_bytes_per_s"`
	Peak            map[string]float64 `json:"peak_flops_per_s"`
	Source          string             `json:"source"`
	Calibrated      []string           `json:"calibrated,omitempty"` // what is predicted by constants fitted to measurements
}

// CardsFormat names the version of Cards as a JSON document.
const CardsFormat = "placer cards 1"

// Cards lists GPUs by their data sheets.
type Cards struct {
	Format string `json:"format"`
	Cards  []card `json:"cards"`
}

// card describes a GPU.
type card struct {
	Name string `json:"name"`
	PCIe string `json:"pcie"`
	device
}

// SummariseCards describes cards.
func SummariseCards(cards []hw.Card) *Cards {
	doc := &Cards{Format: CardsFormat}
	for _, c := range cards {
		x := describeDevice(&c.Device)
		doc.Cards = append(doc.Cards, card{c.Name, c.PCIe.String(), x})
	}
	return doc
}

// WriteText writes c as a table.
func (c *Cards) WriteText(w io.Writer) error {
	t := newTable("card", ">memory", ">bandwidth", ">f32", ">tf32", ">f16", ">i8 TOP/s", "slot").fitting("tf32")
	tera := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf("%.4g", x/1e12)
	}
	for _, x := range c.Cards {
		t.row(x.Name, fmt.Sprintf("%.1f GB", float64(x.Memory)/1e9), rate(x.MemoryBandwidth), tera(x.Peak["f32"]), tera(x.Peak["tf32"]), tera(x.Peak["f16"]), tera(x.Peak["i8"]), x.PCIe)
	}
	pg := newPage(w)
	pg.table(t)
	pg.lines("rates in TFLOP/s, dense, with f32 accumulation; --json has the sources")
	return pg.err
}

// SummariseMachine describes m.
func SummariseMachine(m *hw.Machine) MachineSummary {
	s := MachineSummary{Name: m.Name, Links: len(m.Links)}
	for i, d := range m.Devices {
		s.Devices = append(s.Devices, describeDevice(&d))
		for j, e := range m.Devices {
			if i == j || d.Kind != hw.GPU || e.Kind != hw.GPU {
				continue
			}
			_, b := m.Transfer(i, j)
			if s.FastestRoute == 0 || float64(b) < s.SlowestRoute {
				s.SlowestRoute = float64(b)
			}
			s.FastestRoute = max(s.FastestRoute, float64(b))
		}
	}
	return s
}

func describeDevice(d *hw.Device) device {
	peak := map[string]float64{}
	for k, v := range d.Peak {
		peak[k] = float64(v)
	}
	return device{d.Name, d.Model, d.Kind, int64(d.Memory), float64(d.MemoryBandwidth), peak, d.Source, calibrated(d.Calibration)}
}

// WriteText writes m as a table, a line for each run of equal devices.
func (m *Machines) WriteText(w io.Writer) error {
	t := newTable("machine", "devices", ">memory", ">bandwidth", ">f32 peak", ">GPU to GPU", "calibrated").fitting("calibrated")
	for _, s := range m.Machines {
		for at := 0; at < len(s.Devices); {
			n := 1
			for at+n < len(s.Devices) && s.Devices[at+n].Model == s.Devices[at].Model {
				n++
			}
			d := s.Devices[at]
			route := "-"
			if d.Kind == hw.GPU && s.FastestRoute > 0 {
				route = rate(s.FastestRoute)
				if s.SlowestRoute != s.FastestRoute { // "9 to 45 GB/s"
					route = strings.TrimSuffix(rate(s.SlowestRoute), " GB/s") + " to " + route
				}
			}
			name := s.Name
			if at > 0 {
				name = ""
			}
			t.row(name, fmt.Sprintf("%d x %s", n, d.Model), fmt.Sprintf("%.1f GB", float64(d.Memory)/1e9), rate(d.MemoryBandwidth), fmt.Sprintf("%.1f TFLOP/s", d.Peak["f32"]/1e12), route, cmp.Or(strings.Join(d.Calibrated, " "), "no"))
			at += n
		}
	}
	return t.write(w)
}

// calibrated lists what c has constants for.
func calibrated(c *hw.Calibration) (what []string) {
	if c == nil {
		return nil
	}
	if c.Memory != nil {
		what = append(what, "memory")
	}
	if c.Streams != nil {
		what = append(what, "streams")
	}
	return append(what, slices.Sorted(maps.Keys(c.GEMM))...)
}

// rate is in whole GB/s, below 10 in three digits: a network of 1 Gbit/s has 0.125.
func rate(bytesPerSecond float64) string {
	gb := bytesPerSecond / 1e9
	if gb < 9.95 {
		return fmt.Sprintf("%.3g GB/s", gb)
	}
	return fmt.Sprintf("%.0f GB/s", gb)
}

// byCount returns the keys of m, the highest count first, then by name.
func byCount(m map[string]int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) })
}
