package hw

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"placer/internal/doctest"
)

var update = flag.Bool("update", false, "rewrite the machine tables in docs/hardware-models.md")

// TestDocumentedMachines checks that the tables of docs/hardware-models.md are
// what the machine files say. Run with -update to rewrite them.
func TestDocumentedMachines(t *testing.T) {
	var b strings.Builder
	b.WriteString("| machine | device | usable memory | bandwidth | SMs or cores | peak, TFLOP/s | launch |\n|---|---|---:|---:|---:|---|---:|\n")
	var sources, links strings.Builder
	for _, name := range Names() {
		m, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sources, "\n**%s.** %s\n", name, m.Note)
		for i := range m.Devices {
			d := &m.Devices[i]
			first := slices.IndexFunc(m.Devices, func(e Device) bool { return e.Model == d.Model })
			if first != i {
				continue
			}
			n := 0
			for _, e := range m.Devices {
				if e.Model == d.Model {
					n++
				}
			}
			var peaks []string
			for _, k := range slices.Sorted(maps.Keys(d.Peak)) {
				peaks = append(peaks, fmt.Sprintf("%s %.4g", k, float64(d.Peak[k])/1e12))
			}
			fmt.Fprintf(&b, "| %s | %d x %s | %v of %v | %v | %d | %s | %v |\n", name, n, d.Model, d.Memory, d.Capacity, d.MemoryBandwidth, d.SMs, strings.Join(peaks, ", "), d.Launch)
			fmt.Fprintf(&sources, "- %s: %s.\n", d.Model, strings.TrimSuffix(d.Source, "."))
		}
		said := map[string]bool{}
		for _, l := range m.Links {
			if !said[l.Source] {
				said[l.Source] = true
				fmt.Fprintf(&sources, "- Links such as %s, %v and %v: %s.\n", l.Name, l.Bandwidth, l.Latency, strings.TrimSuffix(l.Source, "."))
			}
		}
		ways := map[string]int{}
		var order []string
		for s := range m.Devices {
			for d := range m.Devices {
				if s < d && m.Devices[s].Kind == GPU {
					l, w := m.Transfer(s, d)
					k := fmt.Sprintf("%s | %v | %v", m.Devices[d].Kind, w, l)
					if ways[k]++; ways[k] == 1 {
						order = append(order, k)
					}
				}
			}
		}
		for _, k := range order {
			fmt.Fprintf(&links, "| %s | %d | %s |\n", name, ways[k], k)
		}
	}
	b.WriteString("\nBetween two devices, each direction on its own:\n\n| machine | pairs | from a GPU to a | bandwidth | latency |\n|---|---:|---|---:|---:|\n")
	b.WriteString(links.String())
	b.WriteString("\n### Sources\n")
	b.WriteString(sources.String())

	const path = "../docs/hardware-models.md"
	stated, replace := doctest.Part(t, path, "<!-- machines: go test ./hw -run TestDocumentedMachines -update -->\n", "<!-- machines end -->")
	if *update {
		replace(b.String())
	} else if stated != b.String() {
		t.Errorf("the tables of %s are not those of the machine files; run go test ./hw -run TestDocumentedMachines -update", path)
	}
}
