//go:build light

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/measure/session"
	"placer/nn"
)

// What a program built with the tag light has in the place of hub, workers and GPUs.

// errNoHub says that this is the light program.
var errNoHub = errors.New("this program was built without hub and workers (tag light)")

// workerPool is never there.
type workerPool struct {
	remote session.Measurer
	host   string
}

func (*hubSettings) checkAddress() error { return errNoHub }

func (*console) openHub(context.Context, *hubSettings, *searchRun) (*workerPool, error) {
	return nil, nil // a search that names one has ended by checkAddress
}

func (x *workerPool) close()                  {}
func (x *workerPool) sum(*console)            {}
func (x *workerPool) tell(*progress, float64) {}

func (c *console) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "worker",
		Short:              "Evaluate placements for searches on other hosts (not in this program)",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errNoHub },
	}
}

// errNoGPU says that this is the light program.
var errNoGPU = fmt.Errorf("%w: this program was built without GPU parts (tag light)", gpu.ErrNoDevice)

// networkOn has no network computed by a GPU.
func networkOn(gpu.Driver, gpu.BLAS) (nn.Device, func(), error) { return nil, nil, errNoGPU }

// realHardware has no GPUs.
func realHardware() hardware {
	return hardware{
		detect: func() (*nvml.Inventory, error) { return nil, errNoGPU },
		host:   thisHost,
		pci:    func() string { return "" },
		watch:  func() (monitor, error) { return nil, errNoGPU },
		open:   func(string, string) (gpu.Driver, gpu.BLAS, error) { return nil, nil, errNoGPU },
	}
}
