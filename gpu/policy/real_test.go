package policy

import (
	"errors"
	"os"
	"testing"

	"placer/gpu"
	"placer/gpu/cuda"
	"placer/graphsage"
)

func neighbours(start, index []int32) *graphsage.Neighbours {
	return &graphsage.Neighbours{Start: start, Index: index}
}

// realGPU returns a device on this host's first GPU.
func realGPU(t *testing.T) *Device {
	t.Helper()
	driver, err := cuda.Open("")
	if errors.Is(err, gpu.ErrNoDevice) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	blas, err := cuda.OpenBLAS(os.Getenv("PLACER_CUBLAS"), driver.Version())
	if err != nil {
		t.Skip(err)
	}
	d, err := Open(driver, blas, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestRealGPUKernels compares every kernel with its reference on a GPU.
func TestRealGPUKernels(t *testing.T) { compareKernels(t, realGPU(t)) }

// TestRealGPUNetwork compares the whole network on a GPU with the CPU. cuBLAS adds
// in an order of its own, hence the wider tolerance.
func TestRealGPUNetwork(t *testing.T) { compareNetworks(t, realGPU(t), 1e-4) }
