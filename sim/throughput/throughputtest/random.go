package throughputtest

import (
	"fmt"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/formats/times"
	"placer/hw"
	"placer/sim/throughput"
)

// Random returns an instance of n ops, forward and backward, on a few
// accelerators and at most one CPU: costs, colours, memory and edges at random.
func Random(rng *rand.Rand, n int) (throughput.Source, error) {
	b := graph.NewBuilder("random")
	forward := 1 + rng.IntN(n)
	colours := int32(1 + rng.IntN(n+1))
	for i := range n {
		o := graph.Op{Name: fmt.Sprint("op", i), Kind: "Layer", Forward: graph.None}
		if i >= forward {
			o.Phase = graph.Backward
		}
		o.Resident = 1 + 9*1<<uint(rng.IntN(2))
		if rng.IntN(3) > 0 {
			o.Group = 1 + rng.Int32N(colours)
		}
		var in []graph.TensorID
		for u := range i {
			if rng.IntN(3) == 0 {
				in = append(in, graph.TensorID(u))
			}
		}
		b.Op(o, in, graph.Tensor{Bytes: 8, Resident: true})
	}
	g, err := b.Build()
	if err != nil {
		return throughput.Source{}, err
	}
	accelerator := times.Model{Name: "a", Count: 2 + rng.IntN(2), Memory: 1 << 40, Seconds: make([]float64, n)}
	cpu := times.Model{Name: "c", CPU: true, Count: rng.IntN(2), Memory: 1 << 40, Seconds: make([]float64, n)}
	if rng.IntN(4) == 0 {
		accelerator.Memory = 30
	}
	t := &times.Table{GraphHash: g.Hash(), Source: "random", Bandwidth: 1, Transfer: make([]float64, n)}
	for i := range n {
		if rng.IntN(4) > 0 {
			accelerator.Seconds[i] = float64(rng.IntN(40))
			cpu.Seconds[i] = accelerator.Seconds[i] * float64(1+rng.IntN(4))
		}
		if rng.IntN(3) > 0 {
			t.Transfer[i] = float64(rng.IntN(12))
		}
	}
	t.Models = []times.Model{accelerator, cpu}
	m, err := t.Machine()
	if err != nil {
		return throughput.Source{}, err
	}
	return throughput.FromTable(g, m, t)
}

// Naive returns the loads of a placement in the words of the definition, ops and
// tensors one by one, and whether it is valid: memories suffice and
// co-location groups are whole.
func Naive(s *throughput.Source, device []uint8) (most float64, valid bool) {
	load, bytes := map[uint8]float64{}, map[uint8]int64{}
	group := map[int32]uint8{}
	g := s.Graph
	valid = true
	cpu := func(d uint8) bool { return s.Machine.Devices[d].Kind == hw.CPU }
	for i := range graph.OpID(g.NumOps()) {
		d := device[i]
		load[d] += s.Seconds[d][i]
		bytes[d] += int64(g.Op(i).Resident)
		if k := g.Op(i).Group; k > 0 {
			if e, ok := group[k]; ok && e != d {
				valid = false
			}
			group[k] = d
		}
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			readers := map[uint8]bool{}
			for _, v := range g.Consumers(t) {
				if device[v] != d {
					readers[device[v]] = true
				}
			}
			if len(readers) > 0 && !cpu(d) {
				load[d] += s.Transfer[t]
			}
			for r := range readers {
				if !cpu(r) {
					load[r] += s.Transfer[t]
				}
			}
		}
	}
	for d, l := range load {
		most = max(most, l)
		if bytes[d] > int64(s.Machine.Devices[d].Memory) {
			valid = false
		}
	}
	return most, valid
}
