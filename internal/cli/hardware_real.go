//go:build !light

package cli

import (
	"fmt"
	"os/exec"

	"placer/hw/gpu"
	"placer/hw/gpu/cuda"
	"placer/hw/nvml"
	"placer/nn"
	"placer/nn/device"
)

// realHardware is that of this host.
func realHardware() hardware {
	return hardware{
		detect: nvml.Detect,
		host:   thisHost,
		pci: func() string {
			text, err := exec.Command("lspci").Output()
			if err != nil {
				return ""
			}
			return string(text)
		},
		watch: func() (monitor, error) { return nvml.Watch() },
		open: func(libcuda, libcublas string) (gpu.Driver, gpu.BLAS, error) {
			d, err := cuda.Open(libcuda)
			if err != nil {
				return nil, nil, err
			}
			b, err := cuda.OpenBLAS(libcublas, d.Version())
			if err != nil {
				return nil, nil, fmt.Errorf("%w; --cublas names a library", err)
			}
			return d, b, nil
		},
	}
}

// networkOn has a policy's network computed by the first GPU, until it is closed.
func networkOn(d gpu.Driver, b gpu.BLAS) (_ nn.Device, closed func(), _ error) {
	opened, err := device.Open(d, b, 0)
	if err != nil {
		return nil, nil, err
	}
	return opened, func() { _ = opened.Close() }, nil
}
