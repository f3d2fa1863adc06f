package rules

import (
	"slices"

	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// uneven is the ratio of an inner layer's compute to the median inner layer's
// above which the layers of a graph count as unequal, and below whose inverse.
const uneven = 1.5

// ExpertDevices returns, [N], the placement that an expert would write by hand: whole
// layers, in order, on consecutive GPUs. The rule, after the descriptions in GO
// (section 4) and in the papers it cites:
//
//   - A graph whose inner layers cost about the same (recurrent stacks,
//     Transformers) gets a layer per device, or layer l of L on device
//     (l-1)*D/L where the counts differ. Embeddings belong to the first layer,
//     attention and softmax to the last, as the graph's annotations say.
//   - A graph of unequal layers (Inception, AmoebaNet) is cut between layers into
//     D contiguous blocks of equal compute.
//   - A graph without layers (imported) is cut at op level, in topological order of
//     the forward pass, into D contiguous blocks of equal compute.
//
// Parameters, gradients and updates go with their layer.
func ExpertDevices(p *plan.Problem) []uint8 {
	devices := p.Machine.Accelerators()
	seconds := p.Evaluator.OpSeconds(int(devices[0]))
	var stage []int32
	layer := layers(p.Graph, p.Units.Levels[unit.Cell], seconds)
	if layer == nil {
		stage = byPosition(p.Graph, seconds, len(devices))
	} else {
		of := assign(computePerLayer(layer, seconds), len(devices))
		stage = make([]int32, len(layer))
		for i, l := range layer {
			stage[i] = of[l-1]
		}
	}
	device := make([]uint8, len(stage))
	for i, s := range stage {
		device[i] = devices[s]
	}
	together(p.Graph, device, seconds)
	return device
}

// layers returns the layer of every op, [N], from 1: its annotation, or what most
// of its cell's time says, or what its neighbours say. It returns nil when no op
// carries an annotation.
func layers(g *graph.Graph, cells *unit.Partition, seconds []float64) []int32 {
	layer := Layers(g)
	if len(layer) == 0 || slices.Max(layer) == 0 {
		return nil
	}
	last := slices.Max(layer)
	votes := make([]float64, last+1)
	for _, ops := range cells.Ops {
		clear(votes)
		for _, i := range ops {
			if layer[i] > 0 {
				votes[layer[i]] += seconds[i] + 1e-12
			}
		}
		best := int32(0)
		for l := range votes {
			if votes[l] > votes[best] {
				best = int32(l)
			}
		}
		for _, i := range ops {
			if layer[i] == 0 {
				layer[i] = best
			}
		}
	}
	fromNeighbours(g, layer)
	return layer
}

// fromNeighbours gives ops without a layer the lowest layer among their
// consumers (a shared input sits with its first use), then the highest among
// their producers, then 1.
func fromNeighbours(g *graph.Graph, layer []int32) {
	for i := len(layer) - 1; i >= 0; i-- {
		if layer[i] != 0 {
			continue
		}
		first, end := g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			for _, c := range g.Consumers(t) {
				if l := layer[c]; l > 0 && (layer[i] == 0 || l < layer[i]) {
					layer[i] = l
				}
			}
		}
	}
	for i := range layer {
		if layer[i] != 0 {
			continue
		}
		for p := range g.Predecessors(graph.OpID(i)) {
			layer[i] = max(layer[i], layer[p])
		}
		layer[i] = max(layer[i], 1)
	}
}

// computePerLayer returns the time of each layer, [L].
func computePerLayer(layer []int32, seconds []float64) []float64 {
	compute := make([]float64, slices.Max(layer))
	for i, l := range layer {
		compute[l-1] += seconds[i]
	}
	return compute
}

// assign returns the stage, 0..d-1, of every layer of the given compute, [L].
func assign(compute []float64, d int) []int32 {
	if len(compute) > d && !even(compute) {
		return blocks(compute, d)
	}
	stage := make([]int32, len(compute))
	for l := range stage {
		if len(compute) <= d {
			stage[l] = int32(l)
		} else {
			stage[l] = int32(l * d / len(compute))
		}
	}
	return stage
}

// even reports whether the inner layers cost about the same. The first and the
// last are not asked: they carry embeddings, attention and softmax.
func even(compute []float64) bool {
	if len(compute) <= 2 {
		return true
	}
	inner := slices.Clone(compute[1 : len(compute)-1])
	slices.Sort(inner)
	median := inner[len(inner)/2]
	return inner[len(inner)-1] <= uneven*median && inner[0]*uneven >= median
}

// together moves every co-location group of g to the device on which most of
// its weight, [N], lies; ties go to the lower device. Device, [N], is changed in
// place.
func together(g *graph.Graph, device []uint8, weight []float64) {
	type member struct{ op, group int32 }
	var members []member
	number := map[int32]int32{} // of each group
	width := int(slices.Max(device)) + 1
	var votes []float64 // [groups*width]
	for i := range device {
		k := g.Op(graph.OpID(i)).Group
		if k == 0 {
			continue
		}
		n, known := number[k]
		if !known {
			n = int32(len(number))
			number[k] = n
			votes = append(votes, make([]float64, width)...)
		}
		members = append(members, member{int32(i), n})
		// The small constant lets ops of no time vote where none has any.
		votes[int(n)*width+int(device[i])] += weight[i] + 1e-12
	}
	chosen := make([]uint8, len(number))
	for n := range chosen {
		v := votes[n*width : (n+1)*width]
		chosen[n] = uint8(slices.Index(v, slices.Max(v)))
	}
	for _, m := range members {
		device[m.op] = chosen[m.group]
	}
}
