// Package cudatest opens this host's GPUs for tests.
package cudatest

import (
	"errors"
	"os"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/cuda"
)

// Open returns the driver and cuBLAS, which PLACER_CUBLAS may name. Without a GPU or
// without cuBLAS t is skipped.
func Open(t testing.TB) (gpu.Driver, gpu.BLAS) {
	t.Helper()
	d, err := cuda.Open("")
	if errors.Is(err, gpu.ErrNoDevice) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := cuda.OpenBLAS(os.Getenv("PLACER_CUBLAS"), d.Version())
	if err != nil {
		t.Skip(err)
	}
	return d, b
}
