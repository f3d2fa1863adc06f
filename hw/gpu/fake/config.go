package fake

import (
	"placer/hw/gpu"
)

// Config describes the machine that is pretended. Rates are bytes and
// operations a second, times are nanoseconds.
type Config struct {
	Devices       int
	Name          string
	Memory        uint64 // of each device
	SMs           int
	Bandwidth     float64 // of device memory; a copy reads and writes
	PeerBandwidth float64
	HostBandwidth float64
	P2P           bool
	FLOPs         [gpu.NumDTypes]float64 // of products; 0 where the type is not there
	VectorFLOPs   float64
	Launch        float64 // of a kernel on a stream, beside its work
	Node          float64 // of a kernel within a graph
	Copy          float64 // of a copy, beside its bytes
	Call          float64 // of the host, for each asynchronous call
	CUDA          int
	// Divided makes a part of a device's multiprocessors do its share of the
	// arithmetic, and half as much again of the bandwidth; without it every part is
	// as fast as the whole.
	Divided bool
	// Kernels are what further kernels do, by name. With them memory holds all
	// data whatever its size, at addresses that code outside Go may read too, and
	// products of f32 are computed.
	Kernels map[string]Kernel
}

// Kernel does what one launch of a kernel does. It may panic where the launch
// would read or write outside its memory; see GPU.Floats.
type Kernel func(g *GPU, grid, block uint32, args []uint64)

// Default is two devices of round figures.
func Default() Config {
	return Config{Devices: 2, Name: "Fake GPU", Memory: 16 << 30, SMs: 100, Bandwidth: 2e12, PeerBandwidth: 50e9, HostBandwidth: 25e9, P2P: true,
		FLOPs:       [gpu.NumDTypes]float64{gpu.F32: 20e12, gpu.TF32: 150e12, gpu.F16: 300e12, gpu.BF16: 300e12, gpu.F64: 10e12},
		VectorFLOPs: 20e12, Launch: 3000, Node: 1500, Copy: 5000, Call: 1000, CUDA: 12040}
}
