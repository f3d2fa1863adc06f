package nvml

import (
	"fmt"
	"slices"

	"placer/hw"
	"placer/units"
)

// What copies are assumed to achieve of the wire, until they are measured.
const (
	pcieShare   = 0.8
	nvlinkShare = 0.9
)

// Machine returns the machine that the inventory describes, with the host's CPU
// if host has one: NVLink where there is any, and the PCIe tree that the common
// ancestors of the pairs imply.
func (inv *Inventory) Machine(name string, host Host) (*hw.Machine, error) {
	n := len(inv.gpus)
	if n == 0 {
		return nil, fmt.Errorf("machine %s: no GPU", name)
	}
	m := &hw.Machine{Name: name, Note: fmt.Sprintf("Found on a host with driver %s. Figures are those of the data sheets at these clocks, nothing is measured.", inv.Driver)}
	for i := range inv.gpus {
		d := inv.gpus[i].device(inv.Driver)
		d.Name = fmt.Sprintf("gpu:%d", i)
		m.Devices = append(m.Devices, d)
	}
	for i := range m.Devices { // devices of one model have equal figures
		d := &m.Devices[i]
		model := d.Model
		for k := 2; ; k++ {
			if j := slices.IndexFunc(m.Devices[:i], func(e hw.Device) bool { return e.Model == d.Model }); j < 0 || m.Devices[j].SameFigures(d) {
				break
			}
			d.Model = fmt.Sprintf("%s #%d", model, k)
		}
	}
	if host.Cores > 0 {
		m.Devices = append(m.Devices, host.Device())
	}
	if err := m.Connect(append(inv.nvlinks(), inv.tree(host.Cores > 0)...)); err != nil {
		return nil, err
	}
	return m, m.Check()
}

// Device returns the CPU: two f32 vector units a core, as assumed for the
// built-in machines' processors.
func (h Host) Device() hw.Device {
	lanes := map[string]float64{"avx2": 32, "avx512": 64}[h.Arch]
	if lanes == 0 {
		lanes = 16
	}
	f32 := float64(h.Cores) * 2.5e9 * lanes
	return hw.Device{Name: "cpu:0", Model: fmt.Sprintf("CPU of %d cores", h.Cores), Kind: hw.CPU, Arch: h.Arch, Capacity: h.Memory, Memory: h.Memory - h.Memory/8,
		MemoryBandwidth: units.BytesPerSecond(min(10e9*float64(h.Cores), 300e9)), Peak: map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(f32), "f64": units.FLOPsPerSecond(f32 / 2)},
		Launch: 2e-6, SMs: h.Cores, Source: fmt.Sprintf("%d cores and memory as the system tells; 2.5 GHz, two %s units a core, 10 GB/s a core up to 300: assumptions", h.Cores, h.Arch)}
}

// nvlinks returns the cables between GPUs that are joined directly, and those to
// the switch that joins the others.
func (inv *Inventory) nvlinks() (cables []hw.Cable) {
	for i := range inv.gpus {
		g := &inv.gpus[i]
		rate := g.nvlinkRate()
		for j := i + 1; j < len(inv.gpus); j++ {
			if k := g.Peers[inv.gpus[j].PCI]; k > 0 && inv.nvlink[i][j] {
				cables = append(cables, hw.Cable{A: gpuName(i), B: gpuName(j), Bandwidth: units.BytesPerSecond(nvlinkShare * rate * float64(k)), Latency: 8e-6,
					Medium: hw.Medium{Medium: hw.NVLink, CollectiveBandwidth: g.collectiveRate(k)},
					Source: fmt.Sprintf("NVML: %d NVLinks of compute capability %d.%d, %.0f GB/s each; %.1f of it achieved and 8 us: assumptions; for collectives as NCCL counts them (src/graph/topo.h)", k, g.Major, g.Minor, rate/1e9, nvlinkShare)})
			}
		}
		if g.Switched > 0 && slices.Contains(inv.nvlink[i], true) {
			cables = append(cables, hw.Cable{A: gpuName(i), B: "nvswitch", Bandwidth: units.BytesPerSecond(nvlinkShare * rate * float64(g.Switched)), Latency: 6e-6,
				Medium: hw.Medium{Medium: hw.NVLink, CollectiveBandwidth: g.collectiveRate(g.Switched), Sharp: g.Major >= 9},
				Source: fmt.Sprintf("NVML: %d NVLinks of compute capability %d.%d to a switch, %.0f GB/s each; %.1f of it achieved and 6 us: assumptions; for collectives as NCCL counts them (src/graph/topo.h)", g.Switched, g.Major, g.Minor, rate/1e9, nvlinkShare)})
		}
	}
	return cables
}

func gpuName(i int) string { return fmt.Sprintf("gpu:%d", i) }

// tree returns the PCIe cables: GPUs with a switch in common meet there, switches
// and lone GPUs of a NUMA node at its socket, sockets at one another.
func (inv *Inventory) tree(cpu bool) (cables []hw.Cable) {
	switches, sockets := inv.classes(pxb), inv.classes(node)
	members := map[int]int{}
	for _, s := range switches {
		members[s]++
	}
	pcie := hw.Medium{Medium: hw.PCIe}
	up := map[int]bool{} // switches that have their cable to a socket
	used := []int{}
	for i := range inv.gpus {
		g := &inv.gpus[i]
		rate := pcieShare * hw.PCIeLane(min(max(g.PCIeGen, 1), 6)) * units.BytesPerSecond(max(g.PCIeWidth, 1))
		source := fmt.Sprintf("NVML: PCIe %d.0 x%d, %.1f GB/s on the wire; %.1f of it achieved, latency: assumptions", g.PCIeGen, g.PCIeWidth, float64(rate)/pcieShare/1e9, pcieShare)
		socket := fmt.Sprintf("socket%d", sockets[i])
		if !slices.Contains(used, sockets[i]) {
			used = append(used, sockets[i])
		}
		if members[switches[i]] < 2 {
			cables = append(cables, hw.Cable{A: gpuName(i), B: socket, Bandwidth: rate, Latency: 4e-6, Medium: pcie, Source: source})
			continue
		}
		hub := fmt.Sprintf("pcie%d", switches[i])
		cables = append(cables, hw.Cable{A: gpuName(i), B: hub, Bandwidth: rate, Latency: 3e-6, Medium: pcie, Source: source})
		if !up[switches[i]] {
			up[switches[i]] = true
			cables = append(cables, hw.Cable{A: hub, B: socket, Bandwidth: rate, Latency: 2e-6, Medium: pcie, Source: source})
		}
	}
	for k := 1; k < len(used); k++ {
		for l := range k {
			cables = append(cables, hw.Cable{A: fmt.Sprintf("socket%d", used[l]), B: fmt.Sprintf("socket%d", used[k]), Bandwidth: 20e9, Latency: 3e-6, Medium: pcie, Source: "between sockets: assumption"})
		}
	}
	if cpu {
		for _, s := range used {
			cables = append(cables, hw.Cable{A: "cpu:0", B: fmt.Sprintf("socket%d", s), Bandwidth: 100e9, Latency: 1e-6, Source: "the host's memory; assumption, never the narrowest link of a route"})
		}
	}
	return cables
}

// classes numbers the sets of GPUs that have level l or a nearer one in common,
// [G], in order of their first member.
func (inv *Inventory) classes(l level) []int {
	class := make([]int, len(inv.gpus))
	next := 0
	for i := range class {
		class[i] = -1
		for j := range i {
			if inv.topology[i][j] <= l {
				class[i] = class[j]
				break
			}
		}
		if class[i] < 0 {
			class[i] = next
			next++
		}
	}
	return class
}
