// Package partition owns the baselines that cut the op graph with a program for
// graph partitioning: METIS, and Scotch with and without the CPU. All lose what a
// schedule is about: direction, order, time and memory.
package partition

import (
	"placer/graph/unit"
	"placer/plan"
	"placer/schedule"
	"placer/units"
)

// network is what a partitioner is given: vertices, the units of ops, that weigh their
// compute on the first of the devices, and edges that weigh the time to move what two
// units exchange over the mean route between two of the devices. Both are in seconds.
type network struct {
	weight []float64 // [U]
	edges  *schedule.Communication
}

func newNetwork(p *plan.Problem, ops *unit.Partition, devices []uint8) network {
	weight := make([]float64, ops.NumUnits())
	for i, s := range p.Evaluator.OpSeconds(int(devices[0])) {
		weight[ops.Of[i]] += s
	}
	latency, perByte := meanRoute(p, devices)
	seconds := func(b units.Bytes) float64 { return latency + float64(b)*perByte }
	return network{weight, schedule.NewCommunication(len(weight), seconds, schedule.Transfers(p.Graph, ops.Of), schedule.Controls(p.Graph, ops.Of))}
}

// scales returns the factors that make the weights of the vertices, and those of the
// edges, sum to about total.
func (n network) scales(total float64) (vertex, edge float64) {
	return total / max(sum(n.weight), 1e-30), total / max(sum(n.edges.Weight), 1e-30)
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// meanRoute returns the mean latency and the mean time per byte over all pairs of
// devices.
func meanRoute(p *plan.Problem, devices []uint8) (latency, perByte float64) {
	for _, a := range devices {
		for _, b := range devices {
			if a != b {
				l, r := p.Machine.Transfer(int(a), int(b))
				latency += float64(l)
				perByte += 1 / float64(r)
			}
		}
	}
	pairs := float64(len(devices) * (len(devices) - 1))
	return latency / pairs, perByte / pairs
}

// speeds returns the speed of each of devices over all ops, as shares that sum to 1.
func speeds(p *plan.Problem, devices []uint8) []float64 {
	speed := make([]float64, len(devices))
	for k, v := range devices {
		speed[k] = 1 / max(sum(p.Evaluator.OpSeconds(int(v))), 1e-30)
	}
	all := sum(speed)
	for k := range speed {
		speed[k] /= all
	}
	return speed
}

// all lists the devices of p's machine.
func all(p *plan.Problem) []uint8 {
	d := make([]uint8, p.Machine.NumDevices())
	for v := range d {
		d[v] = uint8(v)
	}
	return d
}

// spread returns the placement, [N], that puts unit u of ops on devices[part[u]].
func spread(ops *unit.Partition, part, devices []uint8) []uint8 {
	device := make([]uint8, len(ops.Of))
	for i, u := range ops.Of {
		device[i] = devices[part[u]]
	}
	return device
}
