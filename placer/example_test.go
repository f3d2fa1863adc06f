package placer_test

import (
	"context"
	"fmt"

	"placer/hw"
	"placer/placer"
	"placer/placer/problem"
)

// A forward graph of SqueezeNet on two GPUs: read, place, judge.
func Example() {
	m, err := hw.Take("h100", 2, false)
	check(err)
	p, err := placer.Read("../graph/formats/onnx/testdata/light_squeezenet.onnx", m, problem.Options{})
	check(err)
	best, step, err := placer.Place(context.Background(), p, 500, 1)
	check(err)
	fmt.Println("devices:", len(m.Devices), "ops placed:", len(best.Device) == p.Graph.NumOps())
	again, err := placer.Judge(p, best)
	check(err)
	fmt.Println("judged the same:", again.Makespan == step.Makespan, "not below the bound:", float64(step.Makespan) >= p.Bound)
	// Output:
	// devices: 2 ops placed: true
	// judged the same: true not below the bound: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
