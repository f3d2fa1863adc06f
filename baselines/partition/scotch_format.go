package partition

import (
	"bytes"
	"fmt"
	"math"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
	"placer/units"
)

const (
	// Weights of vertices and of edges sum to about this much each, so that sums
	// times distances fit integers of 32 bits.
	scotchTotal = 1 << 24
	// farthest is the largest distance between devices, speedTotal the sum of their
	// speeds.
	farthest   = 64
	speedTotal = 10_000
)

// encodeScotch returns the units of ops in Scotch's format of graphs (version 0, base
// 0, weights of edges and vertices).
func encodeScotch(p *plan.Problem, ops *unit.Partition, devices []uint8) []byte {
	n := newNetwork(p, ops, devices)
	vertex, edge := n.scales(scotchTotal)
	var out bytes.Buffer
	fmt.Fprintf(&out, "0\n%d %d\n0 011\n", len(n.weight), len(n.edges.Unit))
	for u, w := range n.weight {
		to, seconds := n.edges.Neighbours(int32(u))
		// A weight of nothing would let such vertices be piled up anywhere.
		fmt.Fprintf(&out, "%d %d", 1+int(w*vertex), len(to))
		for k, v := range to {
			fmt.Fprintf(&out, " %d %d", 1+int(seconds[k]*edge), v)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// architecture returns the devices in Scotch's format of decomposed targets (deco
// 0): each with its speed and its number in a tree of halves, in which numbers
// 2k and 2k+1 are the halves of k; then the distances, as a lower triangle.
func architecture(p *plan.Problem, devices []uint8) []byte {
	number, largest := make([]int, len(devices)), 0
	var halve func(from, end, k int)
	halve = func(from, end, k int) {
		if end-from == 1 {
			number[from], largest = k, max(largest, k)
			return
		}
		middle := (from + end + 1) / 2
		halve(from, middle, 2*k)
		halve(middle, end, 2*k+1)
	}
	halve(0, len(devices), 1)
	var out bytes.Buffer
	fmt.Fprintf(&out, "deco\n0\n%d %d\n", len(devices), largest)
	for k, s := range speeds(p, devices) {
		fmt.Fprintf(&out, "%d %d %d\n", k, max(1, int(math.Round(s*speedTotal))), number[k])
	}
	for k, row := range distances(p, devices) {
		for _, x := range row[:k] {
			fmt.Fprintf(&out, "%d ", x)
		}
		if k > 0 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// distances returns how long the graph's mean tensor takes between two devices,
// the mean of both ways, in eighths of the shortest such time; 1 where all are
// equal.
func distances(p *plan.Problem, devices []uint8) [][]int {
	var mean units.Bytes
	for t := range p.Graph.NumTensors() {
		mean += p.Graph.Tensor(graph.TensorID(t)).Bytes
	}
	mean /= units.Bytes(max(1, p.Graph.NumTensors()))
	least, most := math.Inf(1), 0.0
	between := make([][]float64, len(devices))
	for a := range devices {
		between[a] = make([]float64, len(devices))
		for b := range a {
			v, w := int(devices[a]), int(devices[b])
			s := float64(p.Machine.TransferSeconds(v, w, mean)+p.Machine.TransferSeconds(w, v, mean)) / 2
			between[a][b] = s
			least, most = min(least, s), max(most, s)
		}
	}
	grid := make([][]int, len(devices))
	for a := range grid {
		grid[a] = make([]int, len(devices))
		for b := range a {
			if grid[a][b] = 1; most > least*1.01 {
				grid[a][b] = min(farthest, int(math.Round(8*between[a][b]/least)))
			}
		}
	}
	return grid
}
