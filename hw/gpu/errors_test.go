package gpu_test

import (
	"fmt"
	"testing"

	"placer/hw/gpu"
)

// TestCodes: the numbers and names of cuda.h.
func TestCodes(t *testing.T) {
	for c, want := range map[gpu.Code]string{
		gpu.OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", gpu.NotSupported: "CUDA_ERROR_NOT_SUPPORTED", gpu.Unjoined: "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
		gpu.Isolation: "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", 906: "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", 12345: "CUDA error 12345",
	} {
		if got := fmt.Sprint(error(c)); got != want {
			t.Errorf("code %d is %s, want %s", int32(c), got, want)
		}
	}
}
