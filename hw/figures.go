package hw

import (
	"fmt"
	"maps"
	"strings"

	"placer/units"
)

// architecture is what a multiprocessor does in a clock: operations by element
// type, a multiply-add counting two, floats with f32 sums. Figures: the vendor's white
// papers; of sm_61, which has no matrix units, the table of arithmetic throughput in the
// CUDA programming guide.
type architecture struct {
	cores int                // of f32
	f64   float64            // of vector units
	flops map[string]float64 // of dense matrix units; see halved
	l2    units.Bytes
}

// architectures by compute capability; see pick for the others.
var architectures = map[int]architecture{
	60:  {64, 64, map[string]float64{"f16": 256}, 4 << 20},
	61:  {128, 8, nil, 2 << 20},
	70:  {64, 64, map[string]float64{"f16": 1024}, 6 << 20},
	75:  {64, 4, map[string]float64{"f16": 1024, "i8": 2048}, 4 << 20},
	80:  {64, 64, map[string]float64{"f16": 2048, "bf16": 2048, "tf32": 1024, "i8": 4096, "f64": 128}, 40 << 20},
	86:  {128, 4, map[string]float64{"f16": 1024, "bf16": 1024, "tf32": 512, "i8": 2048}, 6 << 20},
	89:  {128, 4, map[string]float64{"f16": 1024, "bf16": 1024, "tf32": 512, "f8": 2048, "i8": 2048}, 72 << 20},
	90:  {128, 128, map[string]float64{"f16": 4096, "bf16": 4096, "tf32": 2048, "f8": 8192, "i8": 8192, "f64": 256}, 50 << 20},
	100: {128, 128, map[string]float64{"f16": 8192, "bf16": 8192, "tf32": 4096, "f8": 16384, "i8": 16384, "f4": 32768}, 126 << 20},
	120: {128, 4, map[string]float64{"f16": 1024, "bf16": 1024, "tf32": 512, "f8": 2048, "i8": 2048, "f4": 4096}, 96 << 20},
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

// halved are the types whose products GeForce cards of an architecture multiply at half
// its rate with f32 sums, which frameworks ask for: all floats of matrix units since
// sm_75, but for floats of 4 bits. Integers and f16 sums, and cards of other names, have the full rate.
var halved = []string{"f16", "bf16", "tf32", "f8"}

// unitsOf returns what a multiprocessor of a card of that name does in a clock, given what
// its architecture does, and what to say of the difference.
func (a architecture) unitsOf(name string, cc int) (flops map[string]float64, note string) {
	flops = maps.Clone(a.flops)
	switch {
	case cc == 75 && strings.Contains(name, "GTX"): // TU116 and TU117
		return map[string]float64{"f16": 256}, "no matrix units, f16 at twice the rate of f32"
	case cc >= 75 && strings.Contains(name, "GeForce"):
		for _, t := range halved {
			if flops[t] > 0 {
				flops[t] /= 2
			}
		}
		note = "floats on matrix units at half of that, as GeForce cards sum in f32"
	}
	return flops, note
}

// Spec is what a library tells of a GPU.
type Spec struct {
	Name         string
	Major, Minor int // compute capability
	SMs          int // 0: from Cores
	Cores        int
	SMClock      int // MHz, the highest
	MemoryClock  int // MHz, the highest
	BusWidth     int // bits
	L2           units.Bytes
	Capacity     units.Bytes
	Reserve      units.Bytes // 0: an assumption
	Launch       units.Seconds
	Source       string
}

// Device returns the device of s: peaks are operations per clock times its
// clock, as in a data sheet. What s lacks is taken from a neighbour and named in
// the source.
func (s Spec) Device() Device {
	cc := 10*s.Major + s.Minor
	a, as := pick(cc)
	source := []string{s.Source, fmt.Sprintf("operations per clock: white paper of sm_%d", as)}
	flops, note := a.unitsOf(s.Name, cc)
	if note != "" {
		source = append(source, note)
	}
	if s.SMs == 0 {
		s.SMs = max(1, s.Cores/a.cores)
	}
	if s.L2 == 0 {
		s.L2 = a.l2
	}
	if s.Reserve == 0 {
		s.Reserve = min(800<<20, s.Capacity/8)
		source = append(source, "reserve: assumption")
	}
	if s.Launch == 0 {
		s.Launch = 3e-6
		source = append(source, "launch: assumption")
	}
	clock := float64(max(s.SMClock, 1)) * 1e6
	bandwidth := 2 * float64(s.MemoryClock) * 1e6 * float64(s.BusWidth) / 8
	if bandwidth == 0 {
		bandwidth = 500e9
		source = append(source, "memory bandwidth: a guess")
	}
	d := Device{Model: strings.TrimSpace(strings.TrimPrefix(s.Name, "NVIDIA ")), Kind: GPU, Arch: fmt.Sprintf("sm_%d", cc), Capacity: s.Capacity, Memory: s.Capacity - s.Reserve,
		L2: s.L2, MemoryBandwidth: units.BytesPerSecond(bandwidth), Launch: s.Launch, SMs: s.SMs, Source: strings.Join(source, "; "),
		Peak: map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(2 * float64(a.cores*s.SMs) * clock), "f64": units.FLOPsPerSecond(a.f64 * float64(s.SMs) * clock)}}
	for t, f := range flops {
		d.Peak[t] = units.FLOPsPerSecond(f * float64(s.SMs) * clock)
	}
	return d
}
