package rules

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"placer/graph"
)

// layered returns a chain of products of equal time, one of each of layers.
func layered(t *testing.T, layers ...int32) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("chain")
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
	at := b.Output(x, 0)
	for k, l := range layers {
		m := graph.GEMM{Batch: 1, M: 64, N: 256, K: 256}
		f := b.Op(graph.Op{Name: fmt.Sprintf("f%d", k), Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs(), Bytes: graph.Auto, Layer: l, Forward: graph.None}, []graph.TensorID{at, at},
			graph.Tensor{Shape: graph.Shape{64, 256}, Bytes: graph.Auto})
		at = b.Output(f, 0)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLayers: numbers by which no array should be sized are made dense, in their order;
// those up to the bound stay with their gaps.
func TestLayers(t *testing.T) {
	for _, c := range []struct{ given, want []int32 }{
		{[]int32{0, 1, 2}, []int32{0, 1, 2}},
		{[]int32{0, 3, 3, 9}, []int32{0, 3, 3, 9}},
		{[]int32{1, mostLayer}, []int32{1, mostLayer}},
		{[]int32{0, 5, math.MaxInt32, 5, 1e9}, []int32{0, 1, 3, 1, 2}},
		{[]int32{mostLayer + 1}, []int32{1}},
	} {
		if got := Layers(layered(t, c.given...))[1:]; !slices.Equal(got, c.want) {
			t.Errorf("layers %v are %v, want %v", c.given, got, c.want)
		}
	}
}

// TestHugeLayers: an expert places layers by their order, however large their numbers are.
func TestHugeLayers(t *testing.T) {
	want, _ := place(t, layered(t, 1, 2, 3, 4), 2, false)
	got, _ := place(t, layered(t, 7, 1e9, 2e9, math.MaxInt32), 2, false)
	if !slices.Equal(got.Device, want.Device) {
		t.Errorf("placement %v, with dense numbers %v", got.Device, want.Device)
	}
}
