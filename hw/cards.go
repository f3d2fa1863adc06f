package hw

import (
	"cmp"
	_ "embed" // cards.json
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"placer/units"
)

//go:embed cards.json
var cardsFile []byte

// Card is a GPU as it is sold: figures of its data sheet and the slot that it fills.
type Card struct {
	Name   string // "rtx4090"
	Device Device // without a name; Source says where the figures are from
	PCIe   Slot
	// figures is the model as machine files have it.
	figures json.RawMessage
	cables  string   // built-in machine whose links of NVLink it has, "" where there is none
	aliases []string // other names of it in lspci's lines
}

// Slot is a PCIe connection.
type Slot struct{ Generation, Lanes int }

// pcieLane is the wire rate of a PCIe lane in one direction, by generation.
var pcieLane = [...]units.BytesPerSecond{1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}

// PCIeLane returns the wire rate of a PCIe lane in one direction, 0 for an unknown
// generation.
func PCIeLane(generation int) units.BytesPerSecond {
	if generation < 1 || generation >= len(pcieLane) {
		return 0
	}
	return pcieLane[generation]
}

// ParseSlot reads "4", "4.0" or "4 x8"; without lanes there are 16.
func ParseSlot(s string) (Slot, error) {
	generation, lanes, given := strings.Cut(strings.ReplaceAll(s, " ", ""), "x")
	g, err := strconv.Atoi(strings.TrimSuffix(generation, ".0"))
	n := 16
	if given && err == nil {
		n, err = strconv.Atoi(lanes)
	}
	if err != nil || PCIeLane(g) == 0 || !slices.Contains([]int{1, 2, 4, 8, 16}, n) {
		return Slot{}, fmt.Errorf("PCIe %q: want a generation from 1 to %d and perhaps lanes, as 4 or 4x8", s, len(pcieLane)-1)
	}
	return Slot{g, n}, nil
}

// Rate returns the wire rate of s in one direction.
func (s Slot) Rate() units.BytesPerSecond {
	return PCIeLane(s.Generation) * units.BytesPerSecond(s.Lanes)
}

// Meet returns what a card in a slot comes to: the older generation, the fewer lanes.
func (s Slot) Meet(t Slot) Slot {
	return Slot{min(s.Generation, t.Generation), min(s.Lanes, t.Lanes)}
}

func (s Slot) String() string { return fmt.Sprintf("PCIe %d.0 x%d", s.Generation, s.Lanes) }

// Cards returns the cards whose figures are known, consumer cards first.
func Cards() []Card {
	var file struct {
		Format string
		Cards  []struct {
			Name, PCIe, Model, Machine, Cables string
			Aliases                            []string
			Figures                            json.RawMessage
		}
	}
	if err := json.Unmarshal(cardsFile, &file); err != nil {
		panic(err) // the file is part of the program
	}
	var all []Card
	for _, x := range file.Cards {
		slot, err := ParseSlot(x.PCIe)
		if x.Machine != "" && err == nil {
			x.Model, x.Figures, err = gpuOf(x.Machine)
		}
		c := Card{Name: x.Name, PCIe: slot, figures: x.Figures, cables: cmp.Or(x.Cables, x.Machine), aliases: x.Aliases}
		if err == nil {
			c.Device, err = readModel(x.Model, x.Figures)
		}
		if err != nil {
			panic(fmt.Errorf("hw: cards.json: %s: %w", x.Name, err))
		}
		all = append(all, c)
	}
	return all
}

// gpuOf returns the figures of the GPU of a built-in machine, as its file has them.
func gpuOf(machine string) (model string, figures json.RawMessage, err error) {
	data, err := machineFiles.ReadFile("machines/" + machine + ".json")
	if err != nil {
		return "", nil, err
	}
	var file struct {
		Models  map[string]json.RawMessage
		Devices []struct{ Model string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return "", nil, err
	}
	model = file.Devices[0].Model
	return model, file.Models[model], nil
}

// readModel reads the figures of a model of a machine file.
func readModel(name string, figures json.RawMessage) (Device, error) {
	f, v, err := parseJSON(figures)
	if err != nil {
		return Device{}, err
	}
	d := f.model(v)
	d.Model = name
	return d, f.err
}

// FindCard returns the card of that name, however it is written: "RTX 4090", "4090" and
// "NVIDIA GeForce RTX 4090" are rtx4090.
func FindCard(name string) (Card, error) {
	all := Cards()
	want := plainName(name)
	var names []string
	for _, c := range all {
		if plain := plainName(c.Name); want != "" && (plain == want || strings.TrimPrefix(plain, "rtx") == want || plainName(c.Device.Model) == want) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Card{}, fmt.Errorf("unknown card %q, want one of %s, or a machine file with its figures", name, strings.Join(names, ", "))
}

// plainName is a card's name without what is written in many ways.
func plainName(s string) string {
	s = strings.ToLower(s)
	for _, x := range []string{"nvidia", "amd", "geforce", "instinct", " ", "-", "_"} {
		s = strings.ReplaceAll(s, x, "")
	}
	return s
}

// names returns how many letters of the card's longest name a text about it has, 0 for none.
func (c *Card) names(plain string) (most int) {
	for _, name := range append([]string{c.Name, c.Device.Model}, c.aliases...) {
		if p := plainName(name); len(p) > most && names(plain, p) {
			most = len(p)
		}
	}
	return most
}

// product returns what a line of lspci says of a device's product: what stands in brackets, as
// "GA100 [A100 SXM4 40GB]", whose die has a name like a card's; the line where there are none.
func product(line string) []string {
	var parts []string
	for rest := line; ; {
		_, after, open := strings.Cut(rest, "[")
		part, behind, closed := strings.Cut(after, "]")
		if !open || !closed {
			break
		}
		parts, rest = append(parts, plainName(part)), behind
	}
	if parts == nil {
		parts = []string{plainName(line)}
	}
	return parts
}

// names reports whether text has the name of a card, and not as a part of a longer number: an
// A40 is no A4000.
func names(text, card string) bool {
	for {
		_, after, ok := strings.Cut(text, card)
		if !ok || after == "" || after[0] < '0' || after[0] > '9' {
			return ok
		}
		text = after
	}
}

// Named returns the cards that a text about a host's devices names, as lspci prints it:
// one for each line of a GPU that is known, in order. unknown lists the other lines of
// GPUs.
func Named(text string) (cards []Card, unknown []string) {
	for line := range strings.Lines(text) {
		lower := strings.ToLower(line)
		if !strings.Contains(lower, "vga compatible") && !strings.Contains(lower, "3d controller") && !strings.Contains(lower, "display controller") && !strings.Contains(lower, "processing accelerators") {
			continue
		}
		var best *Card
		longest := 0
		for _, c := range Cards() {
			for _, plain := range product(line) {
				if n := c.names(plain); n > longest {
					best, longest = &c, n
				}
			}
		}
		if best != nil {
			cards = append(cards, *best)
		} else if strings.Contains(lower, "nvidia") || strings.Contains(lower, "instinct") {
			unknown = append(unknown, strings.TrimSpace(line))
		}
	}
	return cards, unknown
}
