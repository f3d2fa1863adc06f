package metis

import (
	"bytes"
	"fmt"
	"strconv"

	"placer/baselines/network"
	"placer/graph/unit"
	"placer/plan"
)

// METIS takes integers of 32 bits, and sums of them must fit too.
const total = 1 << 29

// encode returns METIS' text form of the units of ops: vertex weights are op
// times on the first device, edge weights the times to transfer what is
// exchanged, on the mean route between two devices.
func encode(p *plan.Problem, ops *unit.Partition) []byte {
	weight := network.Weights(p, ops, 0)
	edges := network.Exchanges(p, ops, all(p))
	var cost float64
	for _, e := range edges {
		cost += e.Seconds
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %d 011\n", len(weight), len(edges)/2)
	vertex, link := scale(weight), total/max(cost, 1e-30)
	at := 0
	for u := range weight {
		// A weight of nothing would let METIS pile such vertices up anywhere.
		out.WriteString(strconv.Itoa(1 + int(weight[u]*vertex)))
		for ; at < len(edges) && edges[at].A == int32(u); at++ {
			out.WriteByte(' ')
			out.WriteString(strconv.Itoa(int(edges[at].B) + 1))
			out.WriteByte(' ')
			out.WriteString(strconv.Itoa(1 + int(edges[at].Seconds*link)))
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

// all lists the devices of p's machine.
func all(p *plan.Problem) []uint8 {
	d := make([]uint8, p.Machine.NumDevices())
	for v := range d {
		d[v] = uint8(v)
	}
	return d
}

// shares returns METIS' text form of each part's share of the compute, d parts:
// the speed of its device over all ops, relative to the others.
func shares(p *plan.Problem, d int) []byte {
	var out bytes.Buffer
	for v, s := range network.Speeds(p, all(p)[:d]) {
		fmt.Fprintf(&out, "%d = %.9f\n", v, s)
	}
	return out.Bytes()
}
