package measure_test

import (
	"context"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/hw/gpu/fake"
	"placer/measure"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
)

// A step of two products on two devices that share one GPU, predicted by the
// roofline and run.
func Example() {
	b := graph.NewBuilder("two products")
	for _, name := range []string{"left", "right"} {
		b.Op(graph.Op{Name: name, Kind: "MatMul", DType: graph.BF16, GEMM: graph.GEMM{Batch: 1, M: 4096, N: 4096, K: 4096}, Bytes: graph.Auto, Forward: graph.None},
			nil, graph.Tensor{DType: graph.BF16, Shape: graph.Shape{4096, 4096}, Bytes: graph.Auto})
	}
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	h200, err := hw.Load("h200")
	if err != nil {
		fmt.Println(err)
		return
	}
	h200.Devices[0].Memory /= 16 // the fake is smaller
	m, err := measure.Logical(&h200.Devices[0], 2, 0, 20e9, 10e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	costs, err := roofline.New(g, m, roofline.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := sim.New(g, m, costs, sim.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &plan.Plan{Decision: plan.Decision{Device: []uint8{0, 1}}}
	predicted, err := s.Run(p, sim.Options{Trace: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	device := fake.New(fake.Default())
	cfg := measure.Default()
	cfg.Clock = device.Clock
	r, err := measure.Run(context.Background(), cfg, &measure.Problem{Graph: g, Machine: m, Plan: p, Predicted: predicted, GPU: []int{0, 0}}, costs, device, device.BLAS())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d steps, %d ops traced, %s: %d ops\n", len(r.Steps), len(r.Trace.Ops), r.Classes[0].Class, r.Classes[0].Ops)
	fmt.Printf("measured %v on a slower GPU than the H200 that was predicted: %v\n", r.Makespan, predicted.Makespan)
	// Output:
	// 10 steps, 2 ops traced, gemm: 2 ops
	// measured 465.1 us on a slower GPU than the H200 that was predicted: 176 us
}
