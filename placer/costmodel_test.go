package placer_test

import (
	"context"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

const models = "../graph/formats/onnx/testdata/"

// placed searches for a plan of an example model on the first gpus GPUs of a built-in
// machine.
func placed(t *testing.T, model, gpu string, gpus, evaluations int) (*problem.Problem, *plan.Plan, float64) {
	t.Helper()
	m, err := hw.Take(gpu, gpus, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := placer.Read(models+model, m, problem.Options{Tasks: plan.AllTasks})
	if err != nil {
		t.Fatal(err)
	}
	d, r, err := placer.Place(context.Background(), p, evaluations, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p, d, float64(r.Makespan)
}

// A weight that stands transposed in its file is no work for a second GPU: 2 GPUs took
// 2.33 ms where one took 2.82 ms, while the transposition ran in every step. One GPU takes
// what the products take.
func TestTransposedConstants(t *testing.T) {
	p, d, step := placed(t, "transposed.onnx", "p100", 2, 200)
	if n := plan.DevicesOf(d.Device); n != 1 || step > 1.8e-3 {
		t.Errorf("%d devices and %.4g ms, want 1 device and at most 1.8 ms", n, step*1e3)
	}
	for i := range graph.OpID(p.Graph.NumOps()) {
		if o := p.Graph.Op(i); o.Kind == "Transpose" {
			t.Errorf("%s runs in the step", o.Name)
		}
	}
}

// A chain of products has nothing to do for more than one device: its weights stay where
// they are read, and nothing is sent.
func TestChainStaysTogether(t *testing.T) {
	p, d, _ := placed(t, "chain.onnx", "p100", 8, 300)
	if n, b := plan.DevicesOf(d.Device), search.Traffic(p.Graph, d.Device); n != 1 || b != 0 {
		t.Errorf("%d devices, %v sent; want 1 and nothing", n, b)
	}
}

// Quantised products are faster than those in floats where the device has a rate for them,
// no slower elsewhere but for quantising the input, and stored in a quarter of the memory.
func TestQuantizedIsFaster(t *testing.T) {
	for _, gpu := range []string{"p100", "v100", "a100", "h100", "b200"} {
		f, _, float := placed(t, "float.onnx", gpu, 1, 50)
		q, _, quantized := placed(t, "quantized.onnx", gpu, 1, 50)
		limit := 0.6 * float
		if gpu == "p100" || gpu == "v100" {
			limit = 1.01 * float
		}
		if quantized > limit {
			t.Errorf("%s: %.4g ms quantised, %.4g ms in floats", gpu, quantized*1e3, float*1e3)
		}
		if a, b := q.Graph.Resident(), f.Graph.Resident(); 3*a > b {
			t.Errorf("%v of weights quantised, %v in floats", a, b)
		}
	}
}
