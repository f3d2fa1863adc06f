package nvml

import (
	"fmt"

	"placer/units"
)

// Detect asks the library of this host. The error is an ErrNoLibrary where there
// is none, or no driver.
func Detect() (*Inventory, error) { return detect(host()) }

func detect(n library) (*Inventory, error) {
	if err := n.start(); err != nil {
		return nil, err
	}
	defer func() { _ = n.stop() }()
	inv := &Inventory{}
	inv.Driver, _ = n.driver()
	inv.cuda, _ = n.cuda()
	count, err := n.count()
	if err != nil {
		return nil, fmt.Errorf("NVIDIA's management library: count: %w", err)
	}
	if count == 0 {
		return nil, fmt.Errorf("%w: NVIDIA's management library finds none", ErrNoLibrary)
	}
	devices := make([]device, count)
	for i := range devices {
		if devices[i], err = n.device(i); err != nil {
			return nil, fmt.Errorf("NVIDIA's management library: device %d: %w", i, err)
		}
		inv.gpus = append(inv.gpus, describe(devices[i]))
	}
	for i, d := range devices {
		inv.topology = append(inv.topology, make([]level, count))
		inv.nvlink = append(inv.nvlink, make([]bool, count))
		for j, e := range devices {
			if i != j {
				inv.topology[i][j] = commonAncestor(d, e)
				inv.nvlink[i][j], _ = d.reachesByNVLink(e)
			}
		}
	}
	return inv, nil
}

// commonAncestor asks for the pair's common ancestor. What is not known counts as far.
func commonAncestor(a, b device) level {
	t, err := a.ancestor(b)
	if err != nil {
		return sys
	}
	switch t {
	case topologyInternal:
		return board
	case topologySingle:
		return pix
	case topologyMultiple:
		return pxb
	case topologyHostBridge:
		return phb
	case topologyNode:
		return node
	}
	return sys
}

func describe(d device) gpu {
	g := gpu{Peers: map[string]int{}}
	known := func(what string, err error) bool {
		if err != nil {
			g.Missing = append(g.Missing, what)
		}
		return err == nil
	}
	var err error
	g.Name, err = d.name()
	known("name", err)
	g.UUID, err = d.uuid()
	known("uuid", err)
	g.Major, g.Minor, err = d.capability()
	known("compute capability", err)
	memory, err := d.memory()
	known("memory", err)
	g.Memory = units.Bytes(memory)
	g.PCI, err = d.pci()
	known("PCI address", err)
	g.SMClock, err = d.maxClock(clockSM)
	known("SM clock", err)
	g.MemoryClock, err = d.maxClock(clockMemory)
	known("memory clock", err)
	g.Cores, err = d.cores()
	known("cores", err)
	g.BusWidth, err = d.busWidth()
	known("bus width", err)
	g.PCIeGen, err = d.pcieGeneration()
	known("PCIe generation", err)
	g.PCIeWidth, err = d.pcieWidth()
	known("PCIe width", err)
	limit, err := d.powerLimit()
	known("power limit", err)
	g.PowerLimit = float64(limit) / 1000
	links(d, &g)
	return g
}

// links counts the active NVLinks and what is at their other ends.
func links(d device, g *gpu) {
	for l := range maxLinks {
		if active, err := d.linkActive(l); err != nil || !active {
			continue
		}
		g.NVLinks++
		if end, err := d.linkEnd(l); err != nil || end != linkEndGPU {
			g.Switched++
			continue
		}
		if at, err := d.linkPeer(l); err == nil {
			g.Peers[at]++
		}
	}
}

// address is what identifies a PCI device within a host.
func address(domain, bus, device uint32) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, device)
}
