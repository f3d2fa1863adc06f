package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"placer/nn/device"
	"placer/placer/methods"
	"placer/plan"
)

// Names of devices.
const (
	onCPU  = "cpu"
	onCUDA = "cuda"
)

func addPolicyDevice(fl *pflag.FlagSet, name *string) {
	fl.StringVar(name, "policy-device", onCPU, "GO-one's network runs on cpu, or cuda (first GPU)")
}

// openPolicyDevice returns nil for the CPU.
func (c *console) openPolicyDevice(name string, l libraryFlags) (*device.Device, error) {
	switch name {
	case onCPU:
		return nil, nil
	case onCUDA:
	default:
		return nil, usagef("--policy-device %s: want cpu or cuda", name)
	}
	driver, blas, err := c.hardware.open(l.CUDA, l.CUBLAS)
	if err != nil {
		return nil, err
	}
	return device.Open(driver, blas, 0)
}

// usesNetwork refuses a device for GO-one's network where no method of a search uses
// that network.
func usesNetwork(tasks plan.Tasks, names []string) error {
	switch {
	case !slices.Contains(names, methods.GoOne):
		return usagef("--policy-device: GO-one is not among the methods, and no other has a network that runs there")
	case !methods.ByNetwork(tasks):
		return usagef("--policy-device: GO-one learns %s together without its network, so the device would stand idle; --tasks place uses it", tasks)
	}
	return nil
}
