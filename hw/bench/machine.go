package bench

import (
	"fmt"
	"slices"

	"placer/hw"
)

// Machine returns the machine that was measured: capacities, launch times and
// links as measured, peaks of the data sheet at the devices' clocks, which the
// roofline scales, with the constants that Calibrate has fitted. cpu, if it is not nil, becomes a device behind the measured
// transfers from and to pinned memory.
func (r *Result) Machine(name string, cpu *hw.Device) (*hw.Machine, error) {
	m := &hw.Machine{Name: name, Note: fmt.Sprintf("Measured by placer bench hw, %s; CUDA %d, cuBLAS %d.", r.Date, r.CUDA, r.BLAS)}
	for i := range r.Devices {
		d := r.Devices[i].device()
		d.Calibration = r.calibration(&r.Devices[i])
		d.Name = fmt.Sprintf("gpu:%d", r.Devices[i].Ordinal)
		// Launch times of equal GPUs differ in the last digits; one model has one.
		if j := slices.IndexFunc(r.Devices[:i], func(x device) bool {
			return x.Name == r.Devices[i].Name && x.SMs == r.Devices[i].SMs && x.Memory == r.Devices[i].Memory
		}); j >= 0 {
			name := d.Name
			d = m.Devices[j]
			d.Name = name
		}
		m.Devices = append(m.Devices, d)
	}
	gpus := len(m.Devices)
	if cpu != nil {
		m.Devices = append(m.Devices, *cpu)
	}
	n := len(m.Devices)
	m.Routes = make([][]int32, n*n)
	join := func(from, to int, l Line, source string) {
		m.Routes[from*n+to] = []int32{int32(len(m.Links))}
		m.Links = append(m.Links, hw.Link{Name: m.Devices[from].Name + ">" + m.Devices[to].Name, Bandwidth: l.Bandwidth, Latency: l.Latency, Source: source})
	}
	at := map[int]int{}
	for i := range r.Devices {
		at[r.Devices[i].Ordinal] = i
	}
	for i := range r.Links {
		x := &r.Links[i]
		how := "peer copies, direct"
		if !x.Direct {
			how = "peer copies through the host"
		}
		join(at[x.From], at[x.To], x.Line, fmt.Sprintf("measured: %s, %d sizes, line within %.0f%%", how, len(x.Points), 100*x.Error))
	}
	if cpu != nil {
		for i := range gpus {
			x := &r.Devices[i]
			join(gpus, i, x.HostToGPU, fmt.Sprintf("measured: from pinned memory, line within %.0f%%", 100*x.HostToGPU.Error))
			join(i, gpus, x.GPUToHost, fmt.Sprintf("measured: to pinned memory, line within %.0f%%", 100*x.GPUToHost.Error))
		}
	}
	return m, m.Check()
}

// device returns x with its measured launch times.
func (x *device) device() hw.Device {
	d := hw.Spec{Name: x.Name, Major: x.Major, Minor: x.Minor, SMs: x.SMs, SMClock: x.ClockMHz, MemoryClock: x.MemoryMHz, BusWidth: x.BusWidth, L2: x.L2,
		Capacity: x.Memory, Reserve: x.Context, Launch: x.Launch.Median,
		Source: fmt.Sprintf("measured by placer bench hw: capacity, context of %v, launch (median of %d); clocks %d and %d MHz of the driver", x.Context, x.Launch.N, x.ClockMHz, x.MemoryMHz)}.Device()
	d.GraphLaunch = x.Node.Median
	return d
}
