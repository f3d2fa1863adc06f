package onnx_test

import (
	"fmt"
	"os"

	"placer/graph/formats/onnx"
)

func Example() {
	data, err := os.ReadFile("testdata/light_resnet50.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	g, sum, err := onnx.Import(data, "light_resnet50.onnx", onnx.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d nodes, %d edges; %.2f M parameters, %v\n", sum.Nodes, sum.Edges, float64(sum.Params)/1e6, g.FLOPs())
	// Output:
	// 415 nodes, 430 edges; 25.56 M parameters, 8.25 GFLOP
}
