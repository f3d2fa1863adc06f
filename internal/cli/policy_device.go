package cli

import (
	"github.com/spf13/cobra"

	"placer/gpu/policy"
	"placer/nn"
	"placer/placer"
	"placer/plan"
)

// policyDevice says where the policy's network runs.
type policyDevice struct{ name string }

// Names of devices.
const (
	onCPU  = "cpu"
	onCUDA = "cuda"
)

func (f *policyDevice) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "policy-device", onCPU, "where the network of GO-one runs: cpu or cuda, this host's first GPU")
}

func (f *policyDevice) check() error {
	if f.name != onCPU && f.name != onCUDA {
		return usagef("--policy-device %s: want cpu or cuda", f.name)
	}
	return nil
}

// openPolicyDevice returns nil for the CPU.
func (c *console) openPolicyDevice(f *policyDevice, l libraryFlags) (*policy.Device, error) {
	if f.name != onCUDA {
		return nil, nil
	}
	driver, blas, err := c.hardware.open(l.cuda, l.cublas)
	if err != nil {
		return nil, err
	}
	return policy.Open(driver, blas, 0)
}

// on makes methods whose network may run on a device use d.
func on(d nn.Device, all []placer.Method) []placer.Method {
	out := append([]placer.Method(nil), all...)
	for i, m := range all {
		out[i].New = func(s placer.Start) (plan.Placer, error) {
			p, err := m.New(s)
			if u, ok := p.(interface{ Use(nn.Device) }); ok && err == nil {
				u.Use(d)
			}
			return p, err
		}
	}
	return out
}
