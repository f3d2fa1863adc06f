package graph_test

import (
	"fmt"
	"os"

	"placer/graph"
)

func Example() {
	b := graph.NewBuilder("dense")
	x := b.Op(graph.Op{Name: "x", Kind: "Placeholder", Bytes: graph.Auto, Forward: graph.None}, nil,
		graph.Tensor{Shape: graph.Shape{32, 256}, Bytes: graph.Auto})
	w := b.Op(graph.Op{Name: "w", Kind: "VariableV2", Bytes: graph.Auto, Forward: graph.None, Params: 256 * 10, Resident: 4 * 256 * 10}, nil,
		graph.Tensor{Shape: graph.Shape{256, 10}, Bytes: graph.Auto, Resident: true})
	m := graph.GEMM{Batch: 1, M: 32, N: 10, K: 256}
	b.Op(graph.Op{Name: "y", Kind: "MatMul", Bytes: graph.Auto, Forward: graph.None, GEMM: m, FLOPs: m.FLOPs()},
		[]graph.TensorID{b.Output(x, 0), b.Output(w, 0)}, graph.Tensor{Shape: graph.Shape{32, 10}, Bytes: graph.Auto})
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.NumOps(), "ops,", g.NumEdges(), "edges,", g.FLOPs(), g.Op(2).Bytes)
	if err := g.Write(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 ops, 2 edges, 163.84 kFLOP 44.29 kB
	// {"format": "placer graph 1",
	// "name": "dense",
	// "ops": [
	// {"name": "x", "kind": "Placeholder", "bytes": 0, "out": [{"shape": [32, 256]}]},
	// {"name": "w", "kind": "VariableV2", "bytes": 0, "resident": 10240, "params": 2560, "out": [{"shape": [256, 10], "resident": true}]},
	// {"name": "y", "kind": "MatMul", "flops": 163840, "gemm": [1, 32, 10, 256], "bytes": 44288, "in": ["x", "w"], "out": [{"shape": [32, 10]}]}
	// ]}
}
