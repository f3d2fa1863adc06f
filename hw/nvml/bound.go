//go:build cgo && linux

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// host returns this host's library.
func host() library { return bound{nvml.New()} }

// bound is the library by go-nvml.
type bound struct{ n nvml.Interface }

// told returns an answer of go-nvml.
func told[T any](v T, r nvml.Return) (T, error) {
	if r != nvml.SUCCESS {
		return v, code(r)
	}
	return v, nil
}

func (b bound) start() error { return starting(code(b.n.Init())) }

func (b bound) stop() error { _, err := told(0, b.n.Shutdown()); return err }

func (b bound) driver() (string, error) { return told(b.n.SystemGetDriverVersion()) }

func (b bound) cuda() (int, error) { return told(b.n.SystemGetCudaDriverVersion()) }

func (b bound) count() (int, error) { return told(b.n.DeviceGetCount()) }

func (b bound) device(i int) (device, error) {
	d, err := told(b.n.DeviceGetHandleByIndex(i))
	return boundDevice{d, b.n}, err
}

func (b bound) deviceOf(uuid string) (device, error) {
	d, err := told(b.n.DeviceGetHandleByUUID(uuid))
	return boundDevice{d, b.n}, err
}

// boundDevice is a GPU by go-nvml.
type boundDevice struct {
	nvml.Device
	n nvml.Interface
}

// has reports whether the library has a function: one that it lacks ends the process.
func (d boundDevice) has(symbol string) bool { return d.n.Extensions().LookupSymbol(symbol) == nil }

func (d boundDevice) name() (string, error) { return told(d.GetName()) }

func (d boundDevice) uuid() (string, error) { return told(d.GetUUID()) }

func (d boundDevice) capability() (major, minor int, err error) {
	major, minor, r := d.GetCudaComputeCapability()
	_, err = told(0, r)
	return major, minor, err
}

func (d boundDevice) memory() (uint64, error) {
	m, err := told(d.GetMemoryInfo())
	return m.Total, err
}

func (d boundDevice) pci() (string, error) {
	p, err := told(d.GetPciInfo())
	return address(p.Domain, p.Bus, p.Device), err
}

func (d boundDevice) maxClock(c clock) (int, error) {
	v, err := told(d.GetMaxClockInfo(nvml.ClockType(c)))
	return int(v), err
}

func (d boundDevice) cores() (int, error) {
	if !d.has("nvmlDeviceGetNumGpuCores") {
		return 0, errMissing
	}
	return told(d.GetNumGpuCores())
}

func (d boundDevice) busWidth() (int, error) {
	if !d.has("nvmlDeviceGetMemoryBusWidth") {
		return 0, errMissing
	}
	v, err := told(d.GetMemoryBusWidth())
	return int(v), err
}

func (d boundDevice) pcieGeneration() (int, error) { return told(d.GetMaxPcieLinkGeneration()) }

func (d boundDevice) pcieWidth() (int, error) { return told(d.GetMaxPcieLinkWidth()) }

func (d boundDevice) powerLimit() (int, error) {
	v, err := told(d.GetEnforcedPowerLimit())
	return int(v), err
}

func (d boundDevice) ancestor(other device) (topology, error) {
	t, err := told(d.GetTopologyCommonAncestor(other.(boundDevice).Device))
	return topology(t), err
}

func (d boundDevice) reachesByNVLink(other device) (bool, error) {
	s, err := told(d.GetP2PStatus(other.(boundDevice).Device, capsNVLink))
	return err == nil && s == nvml.P2P_STATUS_OK, err
}

func (d boundDevice) linkActive(l int) (bool, error) {
	s, err := told(d.GetNvLinkState(l))
	return s == nvml.FEATURE_ENABLED, err
}

func (d boundDevice) linkEnd(l int) (linkEnd, error) {
	t, err := told(d.GetNvLinkRemoteDeviceType(l))
	return linkEnd(t), err
}

func (d boundDevice) linkPeer(l int) (string, error) {
	p, err := told(d.GetNvLinkRemotePciInfo(l))
	return address(p.Domain, p.Bus, p.Device), err
}

func (d boundDevice) clock(c clock) (int, error) {
	v, err := told(d.GetClockInfo(nvml.ClockType(c)))
	return int(v), err
}

func (d boundDevice) power() (int, error) {
	v, err := told(d.GetPowerUsage())
	return int(v), err
}

func (d boundDevice) utilisation() (int, error) {
	u, err := told(d.GetUtilizationRates())
	return int(u.Gpu), err
}

func (d boundDevice) reasons() (uint64, error) {
	switch {
	case d.has("nvmlDeviceGetCurrentClocksEventReasons"):
		return told(d.GetCurrentClocksEventReasons())
	case d.has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		return told(d.GetCurrentClocksThrottleReasons())
	}
	return 0, errMissing
}

func (d boundDevice) processes() (int, error) {
	p, err := told(d.GetComputeRunningProcesses())
	return len(p), err
}
