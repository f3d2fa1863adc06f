package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"placer/nn"
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

// openPolicyDevice returns the device with what closes it; nil for the CPU.
func (c *console) openPolicyDevice(name string, l libraryFlags) (_ nn.Device, closed func(), _ error) {
	switch name {
	case onCPU:
		return nil, func() {}, nil
	case onCUDA:
	default:
		return nil, nil, usagef("--policy-device %s: want cpu or cuda", name)
	}
	driver, blas, err := c.hardware.open(l.CUDA, l.CUBLAS)
	if err != nil {
		return nil, nil, err
	}
	return networkOn(driver, blas)
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
