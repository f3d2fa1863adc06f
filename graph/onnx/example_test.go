package onnx_test

import (
	"fmt"

	"placer/graph/onnx"
)

func Example() {
	g, sum, err := onnx.ImportFile("testdata/light_resnet50.onnx", onnx.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d nodes, %d edges; %.2f M parameters, %v\n", sum.Nodes, sum.Edges, float64(sum.Params)/1e6, g.FLOPs())
	_, _, err = onnx.ImportFile("testdata/dummy_t5.onnx", onnx.Default())
	fmt.Println(err)
	// Output:
	// 415 nodes, 430 edges; 25.56 M parameters, 8.25 GFLOP
	// testdata/dummy_t5.onnx: node 0 (BeamSearch): operator com.microsoft.BeamSearch runs a subgraph an unknown number of times: import the subgraph as a model of its own
}
