package hw

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"placer/internal/words"
)

//go:embed machines/*.json
var machineFiles embed.FS

// Names returns the machines that Load knows, sorted.
func Names() []string {
	entries, err := machineFiles.ReadDir("machines")
	if err != nil {
		panic(err) // the files are part of the program
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// OfMore ends an error of a machine that has too few devices.
const OfMore = "name one of more by --machine FILE, as 'placer machines init' writes it"

// Load returns the whole built-in machine of that name: every GPU and the host
// CPU.
func Load(name string) (*Machine, error) {
	if !slices.Contains(Names(), name) {
		if c, err := FindCard(name); err == nil {
			return nil, fmt.Errorf("unknown machine %q, want one of %s; it is a card: 'placer machines init --gpu %s -o FILE' writes a machine file with it", name, strings.Join(Names(), ", "), c.Name)
		}
		return nil, fmt.Errorf("unknown machine %q, want one of %s; 'placer machines --cards' lists the cards of which 'placer machines init' makes others", name, strings.Join(Names(), ", "))
	}
	data, err := machineFiles.ReadFile("machines/" + name + ".json")
	if err != nil {
		return nil, err
	}
	m, err := Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	return m, nil
}

// Take returns the built-in machine gpu with its first gpus GPUs and, on
// demand, its CPUs behind them.
func Take(gpu string, gpus int, withCPU bool) (*Machine, error) {
	m, err := Load(gpu)
	if err != nil {
		return nil, err
	}
	return m.Take(gpus, withCPU)
}

// Take returns the machine that is left of m with its first gpus GPUs and, on
// demand, its CPUs behind them, in m's order, with the links that their routes
// use. It shares with m nothing but the Peak maps, which do not change.
func (m *Machine) Take(gpus int, withCPU bool) (*Machine, error) {
	var keep, cpus []int
	have := 0
	for i, d := range m.Devices {
		switch {
		case d.Kind == CPU:
			cpus = append(cpus, i)
		case have < gpus:
			keep = append(keep, i)
			have++
		default:
			have++
		}
	}
	if gpus < 0 || gpus == 0 && !withCPU {
		return nil, fmt.Errorf("machine %s: %d GPUs asked for, want at least 1", m.Name, gpus)
	}
	if gpus > have {
		return nil, fmt.Errorf("machine %s has %s, %d asked for; %s", m.Name, words.Count(have, "GPU", "GPUs"), gpus, OfMore)
	}
	if withCPU {
		if len(cpus) == 0 {
			return nil, fmt.Errorf("machine %s has no CPU device, one asked for", m.Name)
		}
		keep = append(keep, cpus...)
	}
	return m.Keep(keep), nil
}

// Keep returns m with the devices of keep alone, in that order, each at most once, and
// the links that their routes use. It shares with m what Take does.
func (m *Machine) Keep(keep []int) *Machine {
	used := make([]bool, len(m.Links))
	for _, s := range keep {
		for _, t := range keep {
			for _, l := range m.Route(s, t) {
				used[l] = true
			}
		}
	}
	r := &Machine{Name: m.Name, Note: m.Note, Routes: make([][]int32, 0, len(keep)*len(keep))}
	to := make([]int32, len(m.Links))
	for i, l := range m.Links {
		if used[i] {
			to[i] = int32(len(r.Links))
			r.Links = append(r.Links, l)
		}
	}
	for _, s := range keep {
		r.Devices = append(r.Devices, m.Devices[s])
		for _, t := range keep {
			var route []int32
			for _, l := range m.Route(s, t) {
				route = append(route, to[l])
			}
			r.Routes = append(r.Routes, route)
		}
	}
	return r
}
