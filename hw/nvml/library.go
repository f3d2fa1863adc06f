package nvml

import (
	"errors"
	"fmt"
)

// library is NVIDIA's management library, as far as it is used: by go-nvml, which needs
// cgo, or loaded. Errors are the library's own, errMissing where it is too old
// for a function.
type library interface {
	// start returns an ErrNoLibrary where there is no library, or no driver behind it.
	start() error
	stop() error
	driver() (string, error)
	cuda() (int, error) // 12040 for 12.4
	count() (int, error)
	device(i int) (device, error)
	deviceOf(uuid string) (device, error)
}

// device is one GPU of a library.
type device interface {
	name() (string, error)
	uuid() (string, error)
	capability() (major, minor int, err error)
	memory() (uint64, error) // bytes
	pci() (string, error)    // bus address
	maxClock(clock) (int, error)
	cores() (int, error)
	busWidth() (int, error) // bits
	pcieGeneration() (int, error)
	pcieWidth() (int, error)
	powerLimit() (milliwatts int, err error)
	ancestor(other device) (topology, error)
	reachesByNVLink(other device) (bool, error)
	linkActive(l int) (bool, error)
	linkEnd(l int) (linkEnd, error)
	linkPeer(l int) (string, error) // bus address

	clock(clock) (int, error) // MHz, now
	power() (milliwatts int, err error)
	utilisation() (int, error) // percent
	// reasons returns why the clock is held down. The question has had two names.
	reasons() (uint64, error)
	processes() (int, error) // that compute
}

// Values of the library's enumerations (nvml.h of CUDA 13).
type (
	clock    int32
	topology int32
	linkEnd  int32
)

const (
	clockSM     clock = 1
	clockMemory clock = 2

	topologyInternal   topology = 0
	topologySingle     topology = 10
	topologyMultiple   topology = 20
	topologyHostBridge topology = 30
	topologyNode       topology = 40

	linkEndGPU linkEnd = 0

	capsNVLink = 2 // index of what a pair of GPUs can do
	maxLinks   = 18
)

// errMissing says that the library lacks a function.
var errMissing = errors.New("the library is too old")

// code is what a function of the library returns.
type code int32

const (
	success          code = 0
	insufficientSize code = 7
	driverNotLoaded  code = 9
	libraryNotFound  code = 12
)

// Error says what a code stands for, as far as users see it.
func (c code) Error() string {
	switch c {
	case 3:
		return "not supported"
	case 4:
		return "no permission"
	case 6:
		return "not found"
	case driverNotLoaded:
		return "driver not loaded"
	case 15:
		return "GPU is lost"
	case 18:
		return "driver and library are of different versions"
	}
	return fmt.Sprintf("error %d", int32(c))
}

// starting returns what c, the library's first answer, means.
func starting(c code) error {
	switch c {
	case success:
		return nil
	case libraryNotFound:
		return fmt.Errorf("%w: NVIDIA's management library (%s) is not there", ErrNoLibrary, fileName)
	case driverNotLoaded:
		return fmt.Errorf("%w: NVIDIA's driver is not loaded", ErrNoLibrary)
	}
	return fmt.Errorf("NVIDIA's management library: %w", c)
}
