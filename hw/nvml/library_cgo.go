//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"placer/units"
)

// Detect asks the library of this host. The error is an ErrNoLibrary where there
// is none, or no driver.
func Detect() (*Inventory, error) { return detect(nvml.New()) }

func initialise(n nvml.Interface) error {
	switch r := n.Init(); r {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return fmt.Errorf("%w: NVIDIA's management library (libnvidia-ml.so.1) is not there", ErrNoLibrary)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("%w: NVIDIA's driver is not loaded", ErrNoLibrary)
	default:
		return fmt.Errorf("NVIDIA's management library: %w", r)
	}
}

func detect(n nvml.Interface) (*Inventory, error) {
	if err := initialise(n); err != nil {
		return nil, err
	}
	defer func() { _ = n.Shutdown() }()
	inv := &Inventory{}
	inv.Driver, _ = n.SystemGetDriverVersion()
	inv.cuda, _ = n.SystemGetCudaDriverVersion()
	count, r := n.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("NVIDIA's management library: count: %w", r)
	}
	if count == 0 {
		return nil, fmt.Errorf("%w: NVIDIA's management library finds none", ErrNoLibrary)
	}
	devices := make([]nvml.Device, count)
	for i := range devices {
		if devices[i], r = n.DeviceGetHandleByIndex(i); r != nvml.SUCCESS {
			return nil, fmt.Errorf("NVIDIA's management library: device %d: %w", i, r)
		}
		inv.gpus = append(inv.gpus, describe(n, devices[i]))
	}
	for i := range devices {
		inv.topology = append(inv.topology, make([]level, count))
		inv.nvlink = append(inv.nvlink, make([]bool, count))
		for j := range devices {
			if i != j {
				inv.topology[i][j] = commonAncestor(devices[i], devices[j])
				status, r := devices[i].GetP2PStatus(devices[j], nvml.P2P_CAPS_INDEX_NVLINK)
				inv.nvlink[i][j] = r == nvml.SUCCESS && status == nvml.P2P_STATUS_OK
			}
		}
	}
	return inv, nil
}

// commonAncestor asks for the pair's common ancestor. What is not known counts as far.
func commonAncestor(a, b nvml.Device) level {
	l, r := a.GetTopologyCommonAncestor(b)
	if r != nvml.SUCCESS {
		return sys
	}
	switch l {
	case nvml.TOPOLOGY_INTERNAL:
		return board
	case nvml.TOPOLOGY_SINGLE:
		return pix
	case nvml.TOPOLOGY_MULTIPLE:
		return pxb
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return phb
	case nvml.TOPOLOGY_NODE:
		return node
	}
	return sys
}

func describe(n nvml.Interface, d nvml.Device) gpu {
	g := gpu{Peers: map[string]int{}}
	known := func(what string, r nvml.Return) bool {
		if r != nvml.SUCCESS {
			g.Missing = append(g.Missing, what)
		}
		return r == nvml.SUCCESS
	}
	// A function that an old library lacks ends the process when called.
	has := func(what, symbol string) bool {
		if err := n.Extensions().LookupSymbol(symbol); err != nil {
			g.Missing = append(g.Missing, what)
			return false
		}
		return true
	}
	var r nvml.Return
	g.Name, r = d.GetName()
	known("name", r)
	g.UUID, r = d.GetUUID()
	known("uuid", r)
	g.Major, g.Minor, r = d.GetCudaComputeCapability()
	known("compute capability", r)
	if m, r := d.GetMemoryInfo(); known("memory", r) {
		g.Memory = units.Bytes(m.Total)
	}
	if p, r := d.GetPciInfo(); known("PCI address", r) {
		g.PCI = address(p)
	}
	if c, r := d.GetMaxClockInfo(nvml.CLOCK_SM); known("SM clock", r) {
		g.SMClock = int(c)
	}
	if c, r := d.GetMaxClockInfo(nvml.CLOCK_MEM); known("memory clock", r) {
		g.MemoryClock = int(c)
	}
	if has("cores", "nvmlDeviceGetNumGpuCores") {
		if c, r := d.GetNumGpuCores(); known("cores", r) {
			g.Cores = c
		}
	}
	if has("bus width", "nvmlDeviceGetMemoryBusWidth") {
		if w, r := d.GetMemoryBusWidth(); known("bus width", r) {
			g.BusWidth = int(w)
		}
	}
	if v, r := d.GetMaxPcieLinkGeneration(); known("PCIe generation", r) {
		g.PCIeGen = v
	}
	if v, r := d.GetMaxPcieLinkWidth(); known("PCIe width", r) {
		g.PCIeWidth = v
	}
	if v, r := d.GetEnforcedPowerLimit(); known("power limit", r) {
		g.PowerLimit = float64(v) / 1000
	}
	links(d, &g)
	return g
}

// links counts the active NVLinks and what is at their other ends.
func links(d nvml.Device, g *gpu) {
	for l := range nvml.NVLINK_MAX_LINKS {
		state, r := d.GetNvLinkState(l)
		if r != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		g.NVLinks++
		kind, r := d.GetNvLinkRemoteDeviceType(l)
		if r != nvml.SUCCESS || kind != nvml.NVLINK_DEVICE_TYPE_GPU {
			g.Switched++
			continue
		}
		if p, r := d.GetNvLinkRemotePciInfo(l); r == nvml.SUCCESS {
			g.Peers[address(p)]++
		}
	}
}

// address is what identifies a PCI device within a host.
func address(p nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
}

// Monitor reads the state of GPUs while something runs on them.
type Monitor struct{ n nvml.Interface }

// Watch opens the library for reading states.
func Watch() (*Monitor, error) { return watch(nvml.New()) }

func watch(n nvml.Interface) (*Monitor, error) {
	if err := initialise(n); err != nil {
		return nil, err
	}
	return &Monitor{n}, nil
}

// Read returns the state of the GPU of that UUID.
func (m *Monitor) Read(uuid string) (s State, err error) {
	d, r := m.n.DeviceGetHandleByUUID(uuid)
	if r != nvml.SUCCESS {
		return s, fmt.Errorf("GPU %s: %w", uuid, r)
	}
	sm, r := d.GetClockInfo(nvml.CLOCK_SM)
	if r != nvml.SUCCESS {
		return s, fmt.Errorf("GPU %s: clock: %w", uuid, r)
	}
	mem, _ := d.GetClockInfo(nvml.CLOCK_MEM)
	power, _ := d.GetPowerUsage()
	use, _ := d.GetUtilizationRates()
	why := m.reasons(d)
	return State{SMClock: int(sm), MemoryClock: int(mem), Power: float64(power) / 1000, Utilisation: int(use.Gpu), Throttle: why}, nil
}

// reasons returns why the clock of d is held down. The question has had two names;
// asking by one that the library lacks would end the process.
func (m *Monitor) reasons(d nvml.Device) (why uint64) {
	has := func(symbol string) bool { return m.n.Extensions().LookupSymbol(symbol) == nil }
	switch {
	case has("nvmlDeviceGetCurrentClocksEventReasons"):
		why, _ = d.GetCurrentClocksEventReasons()
	case has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		why, _ = d.GetCurrentClocksThrottleReasons()
	}
	return why
}

// Others returns how many processes compute on the GPU of that UUID, this one
// included.
func (m *Monitor) Others(uuid string) (int, error) {
	d, r := m.n.DeviceGetHandleByUUID(uuid)
	if r != nvml.SUCCESS {
		return 0, fmt.Errorf("GPU %s: %w", uuid, r)
	}
	p, r := d.GetComputeRunningProcesses()
	if r != nvml.SUCCESS {
		return 0, fmt.Errorf("GPU %s: processes: %w", uuid, r)
	}
	return len(p), nil
}

// Close ends the use of the library.
func (m *Monitor) Close() error {
	if r := m.n.Shutdown(); r != nvml.SUCCESS {
		return r
	}
	return nil
}
