package hw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"placer/units"
)

// Template is a machine of one host, or of several that are alike, to be written as a machine
// file that people go on with.
type Template struct {
	Name, Note string
	Cards      []Card // of a host, in order; the PCIe of each is that of its slot
	CPU        Device // of a host, without a name; its Kind is empty where it is no device
	// NVLink says that the cards of a host reach one another as in the built-in machine that
	// has them, not over PCIe.
	NVLink  bool
	Hosts   int     // 0 is one
	Network Network // between several
}

// Shares of the wire that copies are assumed to achieve, and what a copy waits.
const (
	pcieShare      = 0.8
	pcieLatency    = 4e-6
	networkShare   = 0.9
	networkLatency = 4e-6
)

// cableText is a cable as machine files have it, but for its ends.
type cableText struct {
	Bandwidth, Latency  string
	Medium              string
	CollectiveBandwidth string `json:"collective_bandwidth"`
	Sharp               bool
	Source              string
}

// Switched reports whether a built-in machine joins the card, or one that is cabled alike, to a
// switch of NVLink.
func (c Card) Switched() bool {
	_, ok := c.switched()
	return ok
}

// switched returns the cable of that switch, false where there is none.
func (c Card) switched() (t cableText, ok bool) {
	if c.cables == "" {
		return t, false
	}
	data, err := machineFiles.ReadFile("machines/" + c.cables + ".json")
	if err != nil {
		return t, false
	}
	var file struct {
		Cables []struct {
			Ends []string
			cableText
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return t, false
	}
	for _, x := range file.Cables {
		if x.Ends[1] == "nvswitch" {
			return x.cableText, true
		}
	}
	return t, false
}

// templateText collects the lines of a machine file.
type templateText struct {
	models, devices, cpus, cables []string
	known                         map[string]bool
}

// quote returns s as JSON has it.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.TrimSpace(b.String())
}

func (x *templateText) cable(a, b string, c cableText) {
	of := ""
	if c.Medium != "" {
		of = fmt.Sprintf(`"medium": %s, `, quote(c.Medium))
	}
	if c.CollectiveBandwidth != "" {
		of += fmt.Sprintf(`"collective_bandwidth": %s, `, quote(c.CollectiveBandwidth))
	}
	if c.Sharp {
		of += `"sharp": true, `
	}
	x.cables = append(x.cables, fmt.Sprintf(`    {"ends": [%s, %s], "bandwidth": %s, "latency": %s, %s"source": %s}`, quote(a), quote(b), quote(c.Bandwidth), quote(c.Latency), of, quote(c.Source)))
}

// Write writes t as a machine file with the figures as they stand in the sources. Every
// card is cabled to its host, through which cards reach one another, or to a switch of NVLink;
// several hosts are joined by their network's cards.
func (t Template) Write(w io.Writer) error {
	hosts := max(1, t.Hosts)
	switch {
	case len(t.Cards) == 0 && t.CPU.Kind == "":
		return errors.New("a machine needs a GPU or a CPU")
	case hosts > 1 && len(t.Cards) == 0:
		return errors.New("several hosts need GPUs, which their network joins")
	}
	x := &templateText{known: map[string]bool{}}
	for h := range hosts {
		host := "host"
		if hosts > 1 {
			host = fmt.Sprintf("host%d", h)
		}
		if err := t.host(x, h, host); err != nil {
			return fmt.Errorf("machine %s: %w", t.Name, err)
		}
	}
	text := fmt.Sprintf("{\n  \"format\": %s,\n  \"name\": %s,\n  \"note\": %s,\n  \"models\": {\n%s\n  },\n  \"devices\": [\n%s\n  ]", quote(Format), quote(t.Name), quote(t.Note),
		strings.Join(x.models, ",\n"), strings.Join(append(x.devices, x.cpus...), ",\n"))
	if len(x.cables) > 0 {
		text += fmt.Sprintf(",\n  \"cables\": [\n%s\n  ]", strings.Join(x.cables, ",\n"))
	}
	text += "\n}\n"
	if _, err := Read(strings.NewReader(text)); err != nil {
		return fmt.Errorf("machine %s: %w", t.Name, err)
	}
	_, err := io.WriteString(w, text)
	return err
}

// host adds host h, a switch of that name.
func (t Template) host(x *templateText, h int, host string) error {
	for first := 0; first < len(t.Cards); {
		c, end := t.Cards[first], first+1
		for end < len(t.Cards) && t.Cards[end].Name == c.Name && t.Cards[end].PCIe == c.PCIe {
			end++
		}
		if !x.known[c.Device.Model] {
			x.known[c.Device.Model] = true
			var figures bytes.Buffer
			if err := json.Indent(&figures, c.figures, "    ", "  "); err != nil {
				return err
			}
			x.models = append(x.models, fmt.Sprintf("    %s: %s", quote(c.Device.Model), figures.String()))
		}
		gpus := gpuNames(h*len(t.Cards)+first, h*len(t.Cards)+end)
		x.devices = append(x.devices, fmt.Sprintf(`    {"name": %s, "model": %s}`, quote(gpus), quote(c.Device.Model)))
		if t.NVLink {
			cable, ok := c.switched()
			if !ok || first > 0 {
				return fmt.Errorf("no switch of NVLink is known that joins the cards of a host, %s among them", c.Name)
			}
			x.cable(gpus, strings.Replace(host, "host", "nvswitch", 1), cable)
		}
		if !t.NVLink || t.CPU.Kind != "" {
			x.cable(gpus, host, cableText{Bandwidth: gigabytes(c.achieved()), Latency: microseconds(pcieLatency), Medium: PCIe, Source: c.overPCIe() + " latency: assumptions; measure with placer bench hw"})
		}
		first = end
	}
	if t.Hosts > 1 {
		if err := t.Network.join(x, t.Cards, h); err != nil {
			return err
		}
	}
	d := t.CPU
	if d.Kind == "" {
		return nil
	}
	if !x.known[d.Model] {
		x.known[d.Model] = true
		x.models = append(x.models, fmt.Sprintf(`    %s: {
      "kind": "cpu",
      "arch": %s,
      "capacity": "%.4g GB",
      "reserve": "%.4g GB",
      "memory_bandwidth": "%.4g GB/s",
      "peak": {"f32": "%.4g TFLOP/s", "f64": "%.4g TFLOP/s"},
      "launch": "%g us",
      "sms": %d,
      "source": %s
    }`, quote(d.Model), quote(d.Arch), float64(d.Capacity)/1e9, float64(d.Capacity-d.Memory)/1e9, float64(d.MemoryBandwidth)/1e9, float64(d.Peak["f32"])/1e12, float64(d.Peak["f64"])/1e12, float64(d.Launch)*1e6, d.SMs, quote(d.Source)))
	}
	x.cpus = append(x.cpus, fmt.Sprintf(`    {"name": "cpu:%d", "model": %s}`, h, quote(d.Model)))
	if len(t.Cards) > 0 {
		x.cable(fmt.Sprintf("cpu:%d", h), host, cableText{Bandwidth: "100 GB/s", Latency: "1 us", Source: "the host's memory; assumption, never the narrowest link of a route"})
	}
	if t.Hosts > 1 {
		x.cable(host, "network", cableText{Bandwidth: gigabytes(networkShare * t.Network.Rate), Latency: microseconds(networkLatency + pcieLatency), Medium: Between, Source: fmt.Sprintf("of the CPU, through one NIC of %v a host; %.1f of it achieved, latency: assumptions", t.Network, networkShare)})
	}
	return nil
}

// gpuNames returns the GPUs from first to before end as machine files name them.
func gpuNames(first, end int) string {
	if end-first == 1 {
		return fmt.Sprintf("gpu:%d", first)
	}
	return fmt.Sprintf("gpu:[%d-%d]", first, end-1)
}

// achieved returns the rate of copies through the card's slot.
func (c Card) achieved() units.BytesPerSecond { return pcieShare * c.PCIe.Rate() }

// overPCIe says how achieved comes about.
func (c Card) overPCIe() string {
	return fmt.Sprintf("%v, %.1f GB/s on the wire; %.1f of it achieved,", c.PCIe, float64(c.PCIe.Rate())/1e9, pcieShare)
}

func gigabytes(r units.BytesPerSecond) string { return fmt.Sprintf("%.3g GB/s", float64(r)/1e9) }

func microseconds(s units.Seconds) string { return fmt.Sprintf("%g us", float64(s)*1e6) }
