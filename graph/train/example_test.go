package train_test

import (
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// A product of an input and a weight, and the sum of the result.
func ExampleDerive() {
	b := graph.NewBuilder("tiny")
	f32 := func(shape ...int64) graph.Tensor { return graph.Tensor{Shape: shape, Bytes: graph.Auto} }
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder"}, nil, f32(4, 8)), 0)
	w := b.Output(b.Op(graph.Op{Name: "w", Kind: "VariableV2", Params: 16, Resident: 64}, nil, f32(8, 2)), 0)
	m := graph.GEMM{Batch: 1, M: 4, N: 2, K: 8}
	y := b.Output(b.Op(graph.Op{Name: "y", Kind: "MatMul", GEMM: m, FLOPs: m.FLOPs()}, []graph.TensorID{x, w}, f32(4, 2)), 0)
	axes := b.Output(b.Op(graph.Op{Name: "axes", Kind: "Const"}, nil, graph.Tensor{DType: graph.I32, Shape: graph.Shape{2}, Bytes: graph.Auto}), 0)
	b.Op(graph.Op{Name: "loss", Kind: "Sum"}, []graph.TensorID{y, axes}, f32())
	forward, err := b.Build()
	if err != nil {
		panic(err)
	}

	cfg := train.Default()
	cfg.Optimizer = train.SGD
	step, err := train.Derive(forward, cfg)
	if err != nil {
		panic(err)
	}
	for i := graph.OpID(forward.NumOps()); int(i) < step.NumOps(); i++ {
		o := step.Op(i)
		fmt.Println(o.Phase, o.Kind, o.FLOPs)
	}
	// Output:
	// backward Shape 0 FLOP
	// backward Const 0 FLOP
	// backward Fill 1 FLOP
	// backward Const 0 FLOP
	// backward Reshape 0 FLOP
	// backward Shape 0 FLOP
	// backward Tile 0 FLOP
	// backward MatMul 128 FLOP
	// update Const 0 FLOP
	// update ApplyGradientDescent 32 FLOP
	// update NoOp 0 FLOP
}
