//go:build placer_cu

package cu

import (
	"os"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/cuda"
	"placer/hw/gpu/gputest"
)

// TestConformance runs on whatever libcuda.so.1 the loader found. cuBLAS comes
// from hw/gpu/cuda, as gorgonia.org/cu has none that fits; PLACER_CUBLAS may name it.
func TestConformance(t *testing.T) {
	d, err := Open()
	if err != nil {
		t.Skip(err)
	}
	var b gpu.BLAS
	if l, err := cuda.OpenBLAS(os.Getenv("PLACER_CUBLAS"), d.Version()); err == nil {
		b = l
	} else {
		t.Log(err)
	}
	gputest.Run(t, d, b)
}
