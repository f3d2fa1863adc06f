package nvml

import (
	"errors"
	"fmt"
	"strings"

	"placer/hw"
	"placer/units"
)

// ErrNoLibrary says that there is no management library, or no driver behind it.
var ErrNoLibrary = errors.New("no GPU")

// level says what two GPUs have in common, as nvidia-smi topo names it.
type level uint8

// Levels, nearest first.
const (
	same  level = iota // one device
	board              // one board
	pix                // one PCIe switch
	pxb                // several PCIe switches, no host bridge
	phb                // one host bridge
	node               // one NUMA node
	sys                // across sockets
)

// GPU is what the library says of one GPU. Figures that it does not have are
// zero, and named in Missing.
type gpu struct {
	Name         string
	UUID         string
	PCI          string // bus address
	Major, Minor int    // compute capability
	Cores        int
	Memory       units.Bytes
	SMClock      int // MHz, the highest
	MemoryClock  int // MHz, the highest
	BusWidth     int // bits
	PCIeGen      int // the highest of GPU and slot
	PCIeWidth    int
	PowerLimit   float64 // W
	NVLinks      int     // active ones
	// Peers counts the links that lead straight to another GPU, by its PCI bus
	// address; links to a switch are in Switched.
	Peers    map[string]int
	Switched int
	Missing  []string
}

// Inventory is the GPUs of a host.
type Inventory struct {
	Driver string // version
	cuda   int    // 12040 for 12.4
	gpus   []gpu  // [G]
	// Topology is the level that each pair has in common, [G][G].
	topology [][]level
	// NVLink says which pairs can reach each other over NVLink, [G][G].
	nvlink [][]bool
}

// Host describes the host's processor as a device; the zero value leaves it out.
type Host struct {
	Cores  int
	Memory units.Bytes
	Arch   string // "avx2"
}

// State is how a GPU fares at one moment.
type State struct {
	SMClock     int     `json:"sm_clock_mhz"`
	MemoryClock int     `json:"memory_clock_mhz"`
	Power       float64 `json:"power_w"`
	Utilisation int     `json:"utilisation_percent"`
	// Throttle is the set of reasons for which the clock is held down, as bits of
	// the library; 0 and 1 (idle) are none.
	Throttle uint64 `json:"throttle_reasons"`
}

// Spoiled are the reasons of State.Throttle that spoil a measurement: power cap, hardware
// slowdown, thermal slowdown, power brake.
const Spoiled = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

// device returns the figures of g.
func (g *gpu) device(driver string) hw.Device {
	source := fmt.Sprintf("NVML, driver %s: capacity, clocks %d and %d MHz, %d cores, bus of %d bits; nothing measured yet: placer bench hw", driver, g.SMClock, g.MemoryClock, g.Cores, g.BusWidth)
	if len(g.Missing) > 0 {
		source += "; not told: " + strings.Join(g.Missing, ", ")
	}
	return hw.Spec{Name: g.Name, Major: g.Major, Minor: g.Minor, Cores: g.Cores, SMClock: g.SMClock, MemoryClock: g.MemoryClock, BusWidth: g.BusWidth, Capacity: g.Memory, Source: source}.Device()
}

// nvlinkRate is the wire rate of an NVLink of g in one direction. It goes by the
// compute capability: NVML's version of a link counts 2.2 and 3.1 too, so that 6 is
// NVLink 4.0 of an H100.
func (g *gpu) nvlinkRate() float64 {
	switch {
	case g.Major >= 10:
		return 50e9
	case g.Major == 8 && g.Minor > 0:
		return 14e9 // boards for workstations
	case g.Major >= 7:
		return 25e9
	}
	return 20e9
}

// collectiveRate is what kernels of NCCL send over n NVLinks of g in one direction, as its own model has
// it (NVIDIA/nccl, src/graph/topo.h at 5067397: SM60_NVLINK_BW and the like).
func (g *gpu) collectiveRate(n int) units.BytesPerSecond {
	each := 18e9
	switch {
	case g.Major >= 10:
		each = 40.1e9
	case g.Major >= 9:
		each = 20.6e9
	case g.Major == 8 && g.Minor == 6:
		each = 12e9
	case g.Major >= 7:
		each = 20e9
	}
	return units.BytesPerSecond(each * float64(n))
}
