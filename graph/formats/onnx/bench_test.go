package onnx

import (
	"fmt"
	"runtime"
	"testing"

	"placer/graph"
)

// largeModel is a model of n nodes with a weight of its own for every second
// one, most of whose bytes are weights.
func largeModel(n int) []byte {
	var parts [][]byte
	in := "x"
	for i := range n {
		out := fmt.Sprintf("layer_%d/activation", i)
		if i%2 == 0 {
			w := fmt.Sprintf("layer_%d/weights", i)
			parts = append(parts, nodeOf(fmt.Sprintf("layer_%d/MatMul", i), "MatMul", list(in, w), list(out)), initOf(append(tensorOf(w, elemFloat, 32, 32), bytesField(9, make([]byte, 4*32*32))...)))
		} else {
			parts = append(parts, nodeOf(fmt.Sprintf("layer_%d/Relu", i), "Relu", list(in), list(out)))
		}
		in = out
	}
	return modelOf(append(parts, inputOf("x", 8, 32))...)
}

// The weights are never copied: an import takes memory for nodes, not for data.
func TestWeightsAreNotLoaded(t *testing.T) {
	data := modelOf(nodeOf("m", "MatMul", list("x", "w"), list("y")), inputOf("x", 8, 5000), initOf(append(tensorOf("w", elemFloat, 5000, 5000), bytesField(9, make([]byte, 4*5000*5000))...)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := Import(data, "m.onnx", Default()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("importing a model with 100 MB of weights takes %d bytes", n)
	}
}

func BenchmarkImport(b *testing.B) {
	data := largeModel(84000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var g *graph.Graph
	for b.Loop() {
		var err error
		if g, _, err = Import(data, "m.onnx", Default()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(g.NumOps()), "ops")
}
