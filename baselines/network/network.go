package network

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// Edge joins two units by the time to move what they exchange.
type Edge struct {
	A, B    int32
	Seconds float64
}

// Weights returns the compute of each unit of ops, [U]: op times on device d.
func Weights(p *plan.Problem, ops *unit.Partition, d uint8) []float64 {
	weight := make([]float64, ops.NumUnits())
	for i, s := range p.Evaluator.OpSeconds(int(d)) {
		weight[ops.Of[i]] += s
	}
	return weight
}

// Exchanges returns every edge in both directions, sorted by both ends, for the
// mean route between two of devices. A tensor that several ops of a unit read
// crosses once.
func Exchanges(p *plan.Problem, ops *unit.Partition, devices []uint8) []Edge {
	latency, perByte := route(p, devices)
	var edges []Edge
	link := func(a, b int32, bytes units.Bytes) {
		if a != b {
			s := latency + float64(bytes)*perByte
			edges = append(edges, Edge{a, b, s}, Edge{b, a, s})
		}
	}
	var to []int32
	for t := range p.Graph.NumTensors() {
		x := p.Graph.Tensor(graph.TensorID(t))
		to = to[:0]
		for _, c := range p.Graph.Consumers(graph.TensorID(t)) {
			to = append(to, ops.Of[c])
		}
		slices.Sort(to)
		for _, u := range slices.Compact(to) {
			link(ops.Of[x.Producer], u, x.Bytes)
		}
	}
	for i := range p.Graph.NumOps() {
		for _, c := range p.Graph.Control(graph.OpID(i)) {
			link(ops.Of[c], ops.Of[i], 0)
		}
	}
	slices.SortStableFunc(edges, func(x, y Edge) int {
		return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
	merged := edges[:0]
	for _, e := range edges {
		if k := len(merged) - 1; k >= 0 && merged[k].A == e.A && merged[k].B == e.B {
			merged[k].Seconds += e.Seconds
			continue
		}
		merged = append(merged, e)
	}
	return merged
}

// route returns the mean latency and the mean time per byte over all pairs of
// devices.
func route(p *plan.Problem, devices []uint8) (latency, perByte float64) {
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

// Speeds returns the speed of each of devices over all ops, as shares that sum to
// 1.
func Speeds(p *plan.Problem, devices []uint8) []float64 {
	speed := make([]float64, len(devices))
	var sum float64
	for k, v := range devices {
		var t float64
		for _, s := range p.Evaluator.OpSeconds(int(v)) {
			t += s
		}
		speed[k] = 1 / max(t, 1e-30)
		sum += speed[k]
	}
	for k := range speed {
		speed[k] /= sum
	}
	return speed
}
