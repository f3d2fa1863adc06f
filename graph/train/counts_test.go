package train_test

import (
	"testing"

	"placer/graph"
	"placer/graph/train"
)

// TestOpCounts holds the number of ops that the gradient function of each kind
// adds to a graph, counted by hand in TensorFlow 1.12's math_grad, array_grad,
// nn_grad and control_flow_ops: with unknown shapes, with static ones, and what
// gating adds (where there are several gradients, a NoOp and an Identity each).
func TestOpCounts(t *testing.T) {
	f := func(shapes ...graph.Shape) []graph.Shape { return shapes }
	s23, s3, s1, s26 := graph.Shape{2, 3}, graph.Shape{3}, graph.Shape{}, graph.Shape{2, 6}
	var many []graph.Shape
	for range 17 {
		many = append(many, s23)
	}
	for _, c := range []struct {
		name                  string
		kind                  graph.Kind
		in, out               []graph.Shape // in: variables
		axes                  int           // integer operands after them
		dynamic, static, gate int
	}{
		{"Add", "Add", f(s23, s23), f(s23), 0, 7, 0, 3},
		{"Add, broadcast", "Add", f(s23, s3), f(s23), 0, 7, 7, 3},
		{"Sub", "Sub", f(s23, s23), f(s23), 0, 8, 1, 3},
		{"Mul", "Mul", f(s23, s23), f(s23), 0, 9, 2, 3},
		{"Mul, broadcast", "Mul", f(s23, s3), f(s23), 0, 9, 9, 3},
		{"RealDiv", "RealDiv", f(s23, s3), f(s23), 0, 12, 12, 3},
		{"RealDiv of equal shapes", "RealDiv", f(s23, s23), f(s23), 0, 12, 12, 3},
		{"Maximum", "Maximum", f(s23, s3), f(s23), 0, 13, 13, 3},
		{"SquaredDifference", "SquaredDifference", f(s23, s3), f(s23), 0, 12, 12, 3},
		{"AddN", "AddN", f(s23, s23, s23), f(s23), 0, 0, 0, 4},
		{"BiasAdd", "BiasAdd", f(s23, s3), f(s23), 0, 1, 1, 3},
		{"MatMul", "MatMul", f(s23, s23), f(s23), 0, 2, 2, 3},
		{"BatchMatMul", "BatchMatMul", f(s23, s23), f(s23), 0, 2, 2, 3},
		{"BatchMatMulV2", "BatchMatMulV2", f(s23, s23), f(s23), 0, 17, 2, 3},
		{"Conv2D", "Conv2D", f(s23, s23), f(s23), 0, 3, 3, 3},
		{"DepthwiseConv2dNative", "DepthwiseConv2dNative", f(s23, s23), f(s23), 0, 4, 4, 3},
		{"ConcatV2", "ConcatV2", f(s23, s23), f(s26), 1, 7, 7, 3},
		{"ConcatV2 of 17", "ConcatV2", many, f(graph.Shape{2, 51}), 1, 11, 26, 18},
		{"Pack", "Pack", f(s23, s23), f(graph.Shape{2, 2, 3}), 0, 1, 1, 3},
		{"Split", "Split", f(s26), f(s23, s23), 1, 1, 1, 0},
		{"Unpack", "Unpack", f(s23), f(s3, s3), 0, 1, 1, 0},
		{"Slice", "Slice", f(s26), f(s23), 2, 12, 12, 0},
		{"StridedSlice", "StridedSlice", f(s26), f(s23), 3, 2, 2, 0},
		{"Pad", "Pad", f(s23), f(s26), 1, 9, 9, 0},
		{"Tile", "Tile", f(s23), f(s26), 1, 18, 18, 0},
		{"Transpose", "Transpose", f(s23), f(graph.Shape{3, 2}), 1, 2, 2, 0},
		{"Reshape", "Reshape", f(s23), f(graph.Shape{6}), 1, 2, 2, 0},
		{"Squeeze", "Squeeze", f(graph.Shape{1, 3}), f(s3), 0, 2, 2, 0},
		{"Identity", "Identity", f(s23), f(s23), 0, 0, 0, 0},
		{"Sum to a scalar", "Sum", f(s23), f(s1), 1, 4, 4, 0},
		{"Sum of rows", "Sum", f(s23), f(s3), 1, 16, 16, 0},
		{"Mean to a scalar", "Mean", f(s23), f(s1), 1, 15, 7, 0},
		{"Mean of rows", "Mean", f(s23), f(s3), 1, 27, 19, 0},
		{"Softmax", "Softmax", f(s23), f(s23), 0, 5, 5, 0},
		{"LogSoftmax", "LogSoftmax", f(s23), f(s23), 0, 5, 5, 0},
		{"cross entropy", "SparseSoftmaxCrossEntropyWithLogits", f(s23), f(graph.Shape{2}, s23), 1, 4, 4, 0},
		{"GatherV2", "GatherV2", f(graph.Shape{1, 3}), f(graph.Shape{1, 3}), 1, 13, 13, 0},
		{"FusedBatchNorm", "FusedBatchNorm", f(s23, s3, s3), f(s23, s3, s3, s3, s3), 0, 1, 1, 4},
		{"MaxPool", "MaxPool", f(s23), f(s23), 0, 1, 1, 0},
		{"AvgPool", "AvgPool", f(s23), f(s23), 0, 2, 2, 0},
		{"Tanh", "Tanh", f(s23), f(s23), 0, 1, 1, 0},
		{"Exp", "Exp", f(s23), f(s23), 0, 1, 1, 0},
		{"Log", "Log", f(s23), f(s23), 0, 2, 2, 0},
		{"Square", "Square", f(s23), f(s23), 0, 3, 3, 0},
		{"Abs", "Abs", f(s23), f(s23), 0, 2, 2, 0},
		{"Erf", "Erf", f(s23), f(s23), 0, 6, 6, 0},
		{"Cast", "Cast", f(s23), f(s23), 0, 1, 1, 0},
	} {
		n := newNet(c.name)
		var in []graph.TensorID
		for _, s := range c.in {
			in = append(in, n.variable("v"+string(rune('a'+len(in))), s...))
		}
		for range c.axes {
			in = append(in, n.op("Const", nil, i32(1)))
		}
		var outs []graph.Tensor
		for _, s := range c.out {
			outs = append(outs, f32(s...))
		}
		y := n.op(c.kind, in, outs...)
		g := n.build(t)
		loss := []graph.TensorID{y}
		if c.kind == "Split" || c.kind == "Unpack" {
			loss = append(loss, y+1)
		}
		count := func(cfg train.Config) (k int) {
			cfg.Loss = loss
			d := derive(t, g, cfg)
			for i := graph.OpID(g.NumOps()); int(i) < d.NumOps(); i++ {
				if d.Op(i).Phase == graph.Backward {
					k++
				}
			}
			return k - 3*len(loss) // Shape, grad_ys, Fill
		}
		dynamic, static := count(train.Config{}), count(train.Config{StaticShapes: true})
		gate := count(train.Config{GateGradients: true}) - dynamic
		if dynamic != c.dynamic || static != c.static || gate != c.gate {
			t.Errorf("%s: %d ops, %d static, gates %d; want %d, %d, %d", c.name, dynamic, static, gate, c.dynamic, c.static, c.gate)
		}
	}
}
