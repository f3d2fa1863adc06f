// Package cu owns the binding of gpu.Driver through gorgonia.org/cu, as an
// alternative to hw/gpu/cuda that others wrote and a C compiler checks. It exists
// only under the build tag placer_cu, which needs cgo and CUDA's headers:
//
//	CGO_CFLAGS="-I$PWD/gpu/cu/include -I/usr/local/cuda/include" go build -tags placer_cu ./...
//
// A program with it does not start where there is no libcuda.so.1, and ends at
// once where that finds no GPU: gorgonia.org/cu does so when it is loaded. The
// folder include holds a header that lets it compile with CUDA 13.
package cu
