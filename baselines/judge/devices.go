package judge

import (
	"placer/graph"
	"placer/hw"
)

// Accelerators returns the GPUs of m, ascending, or all devices where there is
// none. Rules of thumb such as "a layer per device" are about these.
func Accelerators(m *hw.Machine) []uint8 {
	var gpu, all []uint8
	for i, d := range m.Devices {
		all = append(all, uint8(i))
		if d.Kind == hw.GPU {
			gpu = append(gpu, uint8(i))
		}
	}
	if len(gpu) > 0 {
		return gpu
	}
	return all
}

// Together moves every co-location group of g to the device on which most of
// its weight, [N], lies; ties go to the lower device. Device, [N], is changed in
// place.
func Together(g *graph.Graph, device []uint8, weight []float64) {
	votes := map[int32]*[hw.MaxDevices]float64{}
	for i := range device {
		k := g.Op(graph.OpID(i)).Group
		if k == 0 {
			continue
		}
		v := votes[k]
		if v == nil {
			v = new([hw.MaxDevices]float64)
			votes[k] = v
		}
		// The small constant lets ops of no time vote where none has any.
		v[device[i]] += weight[i] + 1e-12
	}
	for i := range device {
		if k := g.Op(graph.OpID(i)).Group; k != 0 {
			device[i] = argmax(votes[k])
		}
	}
}

func argmax(v *[hw.MaxDevices]float64) uint8 {
	best := 0
	for d := range v {
		if v[d] > v[best] {
			best = d
		}
	}
	return uint8(best)
}
