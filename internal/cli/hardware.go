package cli

import (
	"placer/hw/gpu"
	"placer/hw/nvml"
)

// hardware is how the commands reach GPUs; tests put fakes there.
type hardware struct {
	detect func() (*nvml.Inventory, error)
	watch  func() (monitor, error)
	host   func() nvml.Host // this host's processor
	pci    func() string    // what lspci prints; nothing without it
	// open loads the driver and cuBLAS at these paths, or where they are kept.
	open func(libcuda, libcublas string) (gpu.Driver, gpu.BLAS, error)
}
