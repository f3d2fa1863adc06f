//go:build linux && long

package device

import "testing"

// TestNetworkEmulated is TestNetwork with the kernels of kernels.cu.
func TestNetworkEmulated(t *testing.T) {
	compareNetworks(t, pretended(t, emulated(t, 1, true)), 2e-5)
}
