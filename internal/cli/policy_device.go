package cli

import (
	"github.com/spf13/pflag"

	"placer/nn/device"
)

// Names of devices.
const (
	onCPU  = "cpu"
	onCUDA = "cuda"
)

func addPolicyDevice(fl *pflag.FlagSet, name *string) {
	fl.StringVar(name, "policy-device", onCPU, "where GO-one's network runs: cpu or cuda, this host's first GPU")
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
