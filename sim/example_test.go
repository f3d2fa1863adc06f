package sim_test

import (
	"context"
	"errors"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// exampleCosts takes the time of each op from a list, the same on every device.
type exampleCosts []units.Seconds

func (c exampleCosts) OpSeconds(op graph.OpID, _ int) units.Seconds { return c[op] }

// Two halves of a product run on two GPUs and meet in a sum. The second GPU
// receives 1 GB over a link of 10 GB/s.
func Example() {
	b := graph.NewBuilder("halves")
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder"}, nil, graph.Tensor{Bytes: 1e9})
	in := []graph.TensorID{b.Output(x, 0)}
	left := b.Op(graph.Op{Name: "left", Kind: "MatMul"}, in, graph.Tensor{Bytes: 1e6})
	right := b.Op(graph.Op{Name: "right", Kind: "MatMul"}, in, graph.Tensor{Bytes: 1e6})
	b.Op(graph.Op{Name: "sum", Kind: "Add"}, []graph.TensorID{b.Output(left, 0), b.Output(right, 0)})
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &hw.Machine{Name: "pair", Routes: [][]int32{nil, {0}, {1}, nil}}
	for d := range 2 {
		m.Devices = append(m.Devices, hw.Device{Name: fmt.Sprint("gpu:", d), Kind: hw.GPU, Memory: 900e6, MemoryBandwidth: 500e9,
			Peak: map[string]units.FLOPsPerSecond{"f32": 9e12}, SMs: 56})
		m.Links = append(m.Links, hw.Link{Name: fmt.Sprint("pcie:", d), Bandwidth: 10e9, Latency: 10e-6})
	}
	s, err := sim.New(g, m, exampleCosts{1e-3, 200e-3, 200e-3, 1e-3}, sim.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	bound := s.LowerBound(context.Background())
	fmt.Printf("at least %v by %s\n", bound.Seconds, bound.Tightest().Name)

	p := &plan.Plan{Decision: plan.Decision{Device: []uint8{0, 0, 1, 0}, Priority: sim.CriticalPathPriority(g, s.OpSeconds(0))}}
	r, err := s.Run(p, sim.Options{})
	fmt.Printf("%v, %.0f%% above the bound\n", r.Makespan, 100*bound.Gap(r.Makespan))
	for _, st := range r.CriticalPath {
		what := "runs"
		if st.Transfer {
			what = "sends its output"
		}
		fmt.Printf("%9v %s %s (%s)\n", st.Start, g.Op(st.Op).Name, what, st.Reason)
	}
	var infeasible *sim.Infeasible
	fmt.Println(errors.As(err, &infeasible), err)
	// Output:
	// at least 302 ms by transfers
	// 302.1 ms, 0% above the bound
	//       0 s x runs (start)
	//      1 ms x sends its output (compute)
	//    101 ms right runs (transfer)
	//    301 ms right sends its output (compute)
	//  301.1 ms sum runs (transfer)
	// true infeasible: gpu:0 needs 1.00 GB at 1 ms, it has 900.00 MB; largest: output of x (1.00 GB), output of left (1.00 MB)
}
