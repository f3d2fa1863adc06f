package campaign

import (
	"fmt"
	"math/rand/v2"

	"placer/graph"
	"placer/hw"
	"placer/units"
	"placer/workloads"
)

// drawGraph draws a graph of one of several styles: ops at random, long and thin or
// wide, or a small network of a family of package workloads.
func drawGraph(r *rand.Rand) (*graph.Graph, error) {
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	switch r.IntN(8) {
	case 0:
		return workloads.Build(fmt.Sprintf("rnnlm:layers=%d,unroll=%d", between(1, 3), between(1, 4)))
	case 1:
		return workloads.Build(fmt.Sprintf("gnmt:layers=2,source=%d,target=2", between(1, 3)))
	case 2:
		return workloads.Build(fmt.Sprintf("trfxl:layers=%d,sequence=64", between(1, 2)))
	default:
		return drawOps(r, between(1, 90))
	}
}

// drawOps draws n ops, each of which reads some of those shortly before it.
func drawOps(r *rand.Rand, n int) (*graph.Graph, error) {
	kinds := []graph.Kind{"MatMul", "Add", "Relu", "Mul", "Conv2D", "Softmax", "Concat", "VariableV2"}
	b := graph.NewBuilder("random")
	reach := 1 + r.IntN(16)
	groups := r.IntN(4)
	var made []graph.TensorID
	for i := range n {
		kind := kinds[r.IntN(len(kinds))]
		op := graph.Op{Name: fmt.Sprint("op", i), Kind: kind, Forward: graph.None, Bytes: graph.Auto, FLOPs: units.FLOPs(r.ExpFloat64() * 1e9)}
		var in []graph.TensorID
		if kind == "VariableV2" {
			op.Resident, op.FLOPs = units.Bytes(r.ExpFloat64()*5e7), 0
		} else {
			for range min(len(made), r.IntN(4)) {
				in = append(in, made[max(0, len(made)-1-r.IntN(reach))])
			}
		}
		if r.IntN(10) == 0 {
			op.Workspace = units.Bytes(r.ExpFloat64() * 1e7)
		}
		if groups > 0 && r.IntN(5) == 0 {
			op.Group = int32(1 + r.IntN(groups))
		}
		outs := make([]graph.Tensor, 1+r.IntN(8)/7)
		for k := range outs {
			outs[k] = graph.Tensor{Shape: []int64{int64(1 + r.ExpFloat64()*2e6)}, DType: graph.F32}
		}
		id := b.Op(op, in, outs...)
		for k := range outs {
			made = append(made, b.Output(id, k))
		}
		if i > 0 && r.IntN(12) == 0 {
			b.Control(graph.OpID(max(0, i-1-r.IntN(reach))), id)
		}
	}
	return b.Build()
}

// drawMachine draws 1 to 16 devices of up to three models, the slowest up to ten
// times slower, joined pair by pair, through one switch, or in two boxes with a slow
// cable between, with memory from far too much to hardly enough for g.
func drawMachine(r *rand.Rand, g *graph.Graph) (*hw.Machine, error) {
	m := &hw.Machine{Name: "random"}
	d := 1 + r.IntN(16)
	if r.IntN(2) == 0 {
		d = 1 + r.IntN(4)
	}
	need := float64(g.Resident()) + 1e6
	for i := range g.NumOps() {
		first, end := g.Outputs(graph.OpID(i))
		for t := first; t < end; t++ {
			need += float64(g.Tensor(t).Bytes)
		}
	}
	roomy := []float64{100, 1.5, 0.8, 0.4}[r.IntN(4)]
	models := 1 + r.IntN(3)
	var drawn []hw.Device
	for k := range models {
		slow := 1 + 9*r.Float64()*float64(min(k, 1))
		drawn = append(drawn, hw.Device{
			Model: fmt.Sprint("model", k), Kind: hw.GPU, Memory: units.Bytes(max(1, need*roomy/float64(d)*(0.5+r.Float64()))),
			MemoryBandwidth: units.BytesPerSecond(7e11 / slow), Peak: map[string]units.FLOPsPerSecond{"f32": units.FLOPsPerSecond(1e13 / slow)},
			Launch: 5e-6, SMs: 56, Source: "drawn",
		})
	}
	for i := range d {
		v := drawn[r.IntN(models)]
		v.Name = fmt.Sprint("gpu:", i)
		m.Devices = append(m.Devices, v)
	}
	bandwidth := units.BytesPerSecond([]float64{1e8, 1e10, 1e10, 3e11}[r.IntN(4)])
	latency := units.Seconds([]float64{1e-6, 1e-5, 1e-3}[r.IntN(3)])
	cable := func(a, b string, slower float64) hw.Cable {
		return hw.Cable{A: a, B: b, Bandwidth: bandwidth / units.BytesPerSecond(slower), Latency: latency, Source: "drawn"}
	}
	var cables []hw.Cable
	switch r.IntN(3) {
	case 0:
		for a := range d {
			for b := range a {
				cables = append(cables, cable(m.Devices[a].Name, m.Devices[b].Name, 1))
			}
		}
	case 1:
		for a := range d {
			cables = append(cables, cable(m.Devices[a].Name, "switch", 1))
		}
	default:
		for a := range d {
			cables = append(cables, cable(m.Devices[a].Name, fmt.Sprint("box", a%2), 1))
		}
		cables = append(cables, cable("box0", "box1", 4))
	}
	if err := m.Connect(cables); err != nil {
		return nil, err
	}
	return m, m.Check()
}
