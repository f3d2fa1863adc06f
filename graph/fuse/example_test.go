package fuse_test

import (
	"fmt"

	"placer/graph"
	"placer/graph/fuse"
)

func Example() {
	b := graph.NewBuilder("layer")
	op := func(name string, kind graph.Kind, in ...graph.TensorID) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: kind, Bytes: graph.Auto}, in, graph.Tensor{Shape: graph.Shape{64, 1024}, Bytes: graph.Auto}), 0)
	}
	x := op("x", "Placeholder")
	y := op("y", "MatMul", x)
	op("act", "Relu", op("bias", "BiasAdd", y))
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	f := fuse.NewFuser(fuse.NewRules(g))
	device := []uint8{0, 0, 0, 0}
	for _, priority := range [][]uint8{{0, 0, 0, 0}, {0, 1, 1, 0}} {
		head := f.Fuse(device, priority)
		fmt.Println(priority, head, fuse.Check(g, device, head))
	}
	// Output:
	// [0 0 0 0] [0 1 2 3] <nil>
	// [0 1 1 0] [0 3 3 3] <nil>
}
