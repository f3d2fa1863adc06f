package cuda

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// newestBLAS and oldestBLAS are the cuBLAS whose functions have the signatures here.
const newestBLAS, oldestBLAS = 13, 11

// openBLAS loads cuBLAS as OpenBLAS says.
func openBLAS(path string, version int) (uintptr, error) {
	if path != "" {
		h, err := dynlib.Open(path)
		if err != nil {
			err = fmt.Errorf("%w: %w", gpu.ErrNoBLAS, err)
		}
		return h, err
	}
	newest := newestBLAS
	if version > 0 { // a library of a later CUDA finds the driver too old, though an earlier one may lie beside it
		newest = min(newest, version/1000)
	}
	var files []string
	var why error // of a library that is there and cannot be loaded
	for v := newest; v >= oldestBLAS; v-- {
		file := fmt.Sprintf("libcublas.so.%d", v)
		files = append(files, file)
		h, err := dynlib.Open(placesOf(file, v)...)
		if err == nil {
			return h, nil
		}
		if why == nil && !dynlib.Absent(err) {
			why = err
		}
	}
	if why != nil {
		return 0, fmt.Errorf("%w: %w", gpu.ErrNoBLAS, why)
	}
	return 0, fmt.Errorf("%w: no %s among the system's libraries, in /usr/local/cuda or with PyTorch", gpu.ErrNoBLAS, strings.Join(files, ", "))
}

// placesOf returns where file of CUDA v may be: where the system's loader finds it,
// where toolkits put it, and where Python's packages do, PyTorch's among them.
func placesOf(file string, v int) []string {
	arch := map[string]string{"amd64": "x86_64-linux", "arm64": "aarch64-linux"}[runtime.GOARCH]
	names := []string{file}
	for _, pattern := range []string{
		"/usr/local/cuda/lib64", fmt.Sprintf("/usr/local/cuda-%d*/lib64", v), "/usr/local/cuda/targets/" + arch + "/lib", "/usr/lib/" + arch + "-gnu", "/opt/conda/lib",
		"/usr/lib/python3*/*-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib", "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
	} {
		found, _ := filepath.Glob(pattern + "/" + file) // the one error is that of a bad pattern
		names = append(names, found...)
	}
	return names
}
