package nvml

import (
	"fmt"
	"strings"

	"placer/hw"
	"placer/units"
)

// architecture is what a multiprocessor does in a clock: operations by element
// type, a multiply-add counting two. Figures: the vendor's white papers.
type architecture struct {
	cores int // of f32
	f64   float64
	flops map[string]float64 // of dense matrix units
	l2    units.Bytes
}

// architectures by compute capability; see pick for the others.
var architectures = map[int]architecture{
	60:  {64, 64, map[string]float64{"f16": 256}, 4 << 20},
	70:  {64, 64, map[string]float64{"f16": 1024}, 6 << 20},
	75:  {64, 4, map[string]float64{"f16": 1024, "i8": 2048}, 4 << 20},
	80:  {64, 64, map[string]float64{"f16": 2048, "bf16": 2048, "tf32": 1024, "i8": 4096}, 40 << 20},
	86:  {128, 4, map[string]float64{"f16": 1024, "bf16": 1024, "tf32": 512, "i8": 2048}, 6 << 20},
	89:  {128, 4, map[string]float64{"f16": 1024, "bf16": 1024, "tf32": 512, "f8": 2048, "i8": 2048}, 72 << 20},
	90:  {128, 128, map[string]float64{"f16": 4096, "bf16": 4096, "tf32": 2048, "f8": 8192, "i8": 8192}, 50 << 20},
	100: {128, 128, map[string]float64{"f16": 8192, "bf16": 8192, "tf32": 4096, "f8": 16384, "i8": 16384}, 126 << 20},
}

// pick returns the architecture of capability cc, or the newest one before it.
func pick(cc int) (architecture, int) {
	best := 60
	for k := range architectures {
		if k <= cc && k > best {
			best = k
		}
	}
	return architectures[best], best
}

// device returns the figures of g. What the library does not say is taken from a
// neighbour and named in the source.
func (g *GPU) device(driver string) hw.Device {
	cc := 10*g.Major + g.Minor
	a, as := pick(cc)
	source := []string{fmt.Sprintf("NVML, driver %s: capacity, clocks %d and %d MHz, %d cores, bus of %d bits", driver, g.SMClock, g.MemoryClock, g.Cores, g.BusWidth),
		fmt.Sprintf("operations per clock: white paper of sm_%d", as), "reserve and launch: assumptions", "nothing measured yet: placer bench hw"}
	if len(g.Missing) > 0 {
		source = append(source, "not told: "+strings.Join(g.Missing, ", "))
	}
	sms := max(1, g.Cores/a.cores)
	clock := float64(max(g.SMClock, 1)) * 1e6
	bandwidth := 2 * float64(g.MemoryClock) * 1e6 * float64(g.BusWidth) / 8
	if bandwidth == 0 {
		bandwidth = 500e9
		source = append(source, "memory bandwidth: a guess")
	}
	d := hw.Device{Model: strings.TrimSpace(strings.TrimPrefix(g.Name, "NVIDIA ")), Kind: hw.GPU, Arch: fmt.Sprintf("sm_%d", cc), Capacity: g.Memory, Memory: g.Memory - min(800<<20, g.Memory/8),
		L2: a.l2, MemoryBandwidth: units.BytesPerSecond(bandwidth), Launch: 3e-6, SMs: sms, Source: strings.Join(source, "; "),
		Peak: map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(2 * float64(a.cores*sms) * clock), "f64": units.FLOPsPerSecond(a.f64 * float64(sms) * clock)}}
	for t, f := range a.flops {
		d.Peak[t] = units.FLOPsPerSecond(f * float64(sms) * clock)
	}
	return d
}

// Wire rates in one direction: a PCIe lane by generation, an NVLink by version.
var (
	pcieLane = [...]float64{1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
	nvlink   = [...]float64{1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}
)

// at returns table[i], or its nearest entry.
func at(table []float64, i int) float64 { return table[min(max(i, 1), len(table)-1)] }
