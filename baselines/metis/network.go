package metis

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

// METIS takes integers of 32 bits, and sums of them must fit too.
const total = 1 << 29

// edge joins units a < b (or both directions while collecting) by the time to
// move what they exchange.
type edge struct {
	a, b    int32
	seconds float64
}

// network returns METIS' text form of the units of ops: vertex weights are op
// times on the first device, edge weights the times to transfer what is
// exchanged, on the mean route between two devices.
func network(p *plan.Problem, ops *unit.Partition) []byte {
	weight := make([]float64, ops.NumUnits())
	for i, s := range p.Evaluator.OpSeconds(0) {
		weight[ops.Of[i]] += s
	}
	edges := exchanges(p, ops)
	var cost float64
	for _, e := range edges {
		cost += e.seconds
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %d 011\n", len(weight), len(edges)/2)
	vertex, link := scale(weight), total/max(cost, 1e-30)
	at := 0
	for u := range weight {
		// A weight of nothing would let METIS pile such vertices up anywhere.
		out.WriteString(strconv.Itoa(1 + int(weight[u]*vertex)))
		for ; at < len(edges) && edges[at].a == int32(u); at++ {
			out.WriteByte(' ')
			out.WriteString(strconv.Itoa(int(edges[at].b) + 1))
			out.WriteByte(' ')
			out.WriteString(strconv.Itoa(1 + int(edges[at].seconds*link)))
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func scale(weight []float64) float64 {
	var sum float64
	for _, w := range weight {
		sum += w
	}
	return total / max(sum, 1e-30)
}

// exchanges returns every edge in both directions, sorted by both ends. A tensor
// that several ops of a unit read crosses once.
func exchanges(p *plan.Problem, ops *unit.Partition) []edge {
	latency, perByte := route(p)
	var edges []edge
	link := func(a, b int32, bytes units.Bytes) {
		if a != b {
			s := latency + float64(bytes)*perByte
			edges = append(edges, edge{a, b, s}, edge{b, a, s})
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
	slices.SortStableFunc(edges, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	merged := edges[:0]
	for _, e := range edges {
		if k := len(merged) - 1; k >= 0 && merged[k].a == e.a && merged[k].b == e.b {
			merged[k].seconds += e.seconds
			continue
		}
		merged = append(merged, e)
	}
	return merged
}

// route returns the mean latency and the mean time per byte over all pairs of
// devices.
func route(p *plan.Problem) (latency, perByte float64) {
	d := p.Machine.NumDevices()
	for a := range d {
		for b := range d {
			if a != b {
				l, r := p.Machine.Transfer(a, b)
				latency += float64(l)
				perByte += 1 / float64(r)
			}
		}
	}
	pairs := float64(d * (d - 1))
	return latency / pairs, perByte / pairs
}

// shares returns METIS' text form of each part's share of the compute, d parts:
// the speed of its device over all ops, relative to the others.
func shares(p *plan.Problem, d int) []byte {
	speed := make([]float64, d)
	var sum float64
	for v := range d {
		var t float64
		for _, s := range p.Evaluator.OpSeconds(v) {
			t += s
		}
		speed[v] = 1 / max(t, 1e-30)
		sum += speed[v]
	}
	var out bytes.Buffer
	for v := range d {
		fmt.Fprintf(&out, "%d = %.9f\n", v, speed[v]/sum)
	}
	return out.Bytes()
}
