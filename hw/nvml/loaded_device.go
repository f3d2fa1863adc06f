package nvml

import (
	"errors"
	"unsafe"
)

// loadedDevice is a GPU of a loaded library. Its memory is the library's.
type loadedDevice struct {
	l  *loaded
	at uintptr
}

// get calls a function that writes a T behind the words a, none of which is the
// address of a Go variable.
func get[T any](d loadedDevice, name string, a ...uintptr) (v T, err error) {
	switch len(a) {
	case 0:
		err = d.l.call(name, d.at, uintptr(unsafe.Pointer(&v)))
	default:
		err = d.l.call(name, d.at, a[0], uintptr(unsafe.Pointer(&v)))
	}
	return v, err
}

// number is get for the unsigned int that most functions write.
func (d loadedDevice) number(name string, a ...uintptr) (int, error) {
	v, err := get[uint32](d, name, a...)
	return int(v), err
}

func (d loadedDevice) text(name string) (string, error) {
	var b [96]byte // NVML_DEVICE_NAME_V2_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE
	err := d.l.call(name, d.at, uintptr(unsafe.Pointer(&b)), uintptr(len(b)))
	return text(b[:]), err
}

// pciInfo is nvmlPciInfo_t.
type pciInfo struct {
	_                   [16]byte // legacy address
	domain, bus, device uint32
	_                   [2]uint32 // what device it is
	_                   [32]byte  // address
}

func (d loadedDevice) name() (string, error) { return d.text("nvmlDeviceGetName") }

func (d loadedDevice) uuid() (string, error) { return d.text("nvmlDeviceGetUUID") }

func (d loadedDevice) capability() (major, minor int, err error) {
	var a, b int32
	err = d.l.call("nvmlDeviceGetCudaComputeCapability", d.at, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&b)))
	return int(a), int(b), err
}

func (d loadedDevice) memory() (uint64, error) {
	m, err := get[struct{ total, free, used uint64 }](d, "nvmlDeviceGetMemoryInfo")
	return m.total, err
}

func (d loadedDevice) pci() (string, error) {
	p, err := get[pciInfo](d, "nvmlDeviceGetPciInfo_v3")
	return address(p.domain, p.bus, p.device), err
}

func (d loadedDevice) maxClock(c clock) (int, error) {
	return d.number("nvmlDeviceGetMaxClockInfo", uintptr(c))
}

func (d loadedDevice) cores() (int, error) { return d.number("nvmlDeviceGetNumGpuCores") }

func (d loadedDevice) busWidth() (int, error) { return d.number("nvmlDeviceGetMemoryBusWidth") }

func (d loadedDevice) pcieGeneration() (int, error) {
	return d.number("nvmlDeviceGetMaxPcieLinkGeneration")
}

func (d loadedDevice) pcieWidth() (int, error) { return d.number("nvmlDeviceGetMaxPcieLinkWidth") }

func (d loadedDevice) powerLimit() (int, error) { return d.number("nvmlDeviceGetEnforcedPowerLimit") }

func (d loadedDevice) ancestor(other device) (topology, error) {
	return get[topology](d, "nvmlDeviceGetTopologyCommonAncestor", other.(loadedDevice).at)
}

func (d loadedDevice) reachesByNVLink(other device) (bool, error) {
	var status int32
	err := d.l.call("nvmlDeviceGetP2PStatus", d.at, other.(loadedDevice).at, capsNVLink, uintptr(unsafe.Pointer(&status)))
	return err == nil && status == 0, err
}

func (d loadedDevice) linkActive(l int) (bool, error) {
	active, err := d.number("nvmlDeviceGetNvLinkState", uintptr(l))
	return active == 1, err
}

func (d loadedDevice) linkEnd(l int) (linkEnd, error) {
	return get[linkEnd](d, "nvmlDeviceGetNvLinkRemoteDeviceType", uintptr(l))
}

func (d loadedDevice) linkPeer(l int) (string, error) {
	p, err := get[pciInfo](d, "nvmlDeviceGetNvLinkRemotePciInfo_v2", uintptr(l))
	return address(p.domain, p.bus, p.device), err
}

func (d loadedDevice) clock(c clock) (int, error) {
	return d.number("nvmlDeviceGetClockInfo", uintptr(c))
}

func (d loadedDevice) power() (int, error) { return d.number("nvmlDeviceGetPowerUsage") }

func (d loadedDevice) utilisation() (int, error) {
	u, err := get[struct{ gpu, memory uint32 }](d, "nvmlDeviceGetUtilizationRates")
	return int(u.gpu), err
}

func (d loadedDevice) reasons() (uint64, error) {
	why, err := get[uint64](d, "nvmlDeviceGetCurrentClocksEventReasons")
	if errors.Is(err, errMissing) {
		why, err = get[uint64](d, "nvmlDeviceGetCurrentClocksThrottleReasons")
	}
	return why, err
}

// processes asks for their number alone, which the library tells where there is no
// room for any. The function's versions differ in what they would write.
func (d loadedDevice) processes() (n int, err error) {
	for _, version := range []string{"_v3", "_v2", ""} {
		var count uint32
		err = d.l.call("nvmlDeviceGetComputeRunningProcesses"+version, d.at, uintptr(unsafe.Pointer(&count)), 0)
		if errors.Is(err, errMissing) {
			continue
		}
		if errors.Is(err, insufficientSize) {
			err = nil
		}
		return int(count), err
	}
	return 0, err
}
