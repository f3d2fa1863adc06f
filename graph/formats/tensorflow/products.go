package tensorflow

import (
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"

	"placer/graph"
	"placer/graph/einsum"
)

// elementwiseSum is the kind of an Einsum that is no matrix product.
const elementwiseSum graph.Kind = "EinsumElementwise"

// layers is the product of a step of recurrent layers, which follows itself.
type layers struct {
	graph.GEMM
	times  int64
	reread float64 // weights that steps behind the first read once more
}

// nodeProduct returns the matrix product that a node amounts to whose operator needs more
// than its kind: equations, three dimensions, channels one by one; zero for none.
func nodeProduct(n *nodepb.NodeDef, in, outs []output) (g graph.GEMM) {
	if len(in) < 2 || len(outs) < 1 {
		return g
	}
	shapeOf := func(k int) []int64 {
		if k < len(in) {
			return in[k].shape
		}
		return nil
	}
	y, z, out := shapeOf(1), shapeOf(2), outs[0].shape
	switch n.Op {
	case "Einsum", "XlaEinsum":
		if sum := einsumOf(n, in); sum != nil {
			g = sum.GEMM
		}
	case "Conv3D", "_FusedConv3D":
		if len(y) == 5 && y[4] > 0 && out != nil {
			g = graph.GEMM{Batch: 1, M: elements(out) / y[4], N: y[4], K: elements(y[:4])}
		}
	case "Conv3DBackpropInput", "Conv3DBackpropInputV2": // input or sizes, filter, gradient of the output
		if len(y) == 5 && len(z) == 5 && y[4] > 0 {
			g = graph.GEMM{Batch: 1, M: elements(z) / y[4], N: elements(y[:4]), K: y[4]}
		}
	case "Conv3DBackpropFilter", "Conv3DBackpropFilterV2": // input, filter or sizes, gradient of the output
		if len(out) == 5 && len(z) == 5 && out[4] > 0 {
			g = graph.GEMM{Batch: 1, M: elements(out[:4]), N: out[4], K: elements(z) / out[4]}
		}
	case "DepthwiseConv2dNativeBackpropInput": // sizes, filter [height,width,channels,multiplier], gradient
		if len(y) == 4 && len(z) == 4 && y[2] > 0 && y[3] > 0 {
			g = graph.GEMM{Batch: y[2], M: elements(z) / (y[2] * y[3]), N: y[0] * y[1], K: y[3]}
		}
	case "DepthwiseConv2dNativeBackpropFilter": // input, sizes, gradient
		if len(out) == 4 && len(z) == 4 && out[2] > 0 && out[3] > 0 {
			g = graph.GEMM{Batch: out[2], M: out[0] * out[1], N: out[3], K: elements(z) / (out[2] * out[3])}
		}
	}
	return sound(g)
}

// einsumOf returns what a node's equation makes of its inputs; nil where the equation
// cannot be read or a shape is not known.
func einsumOf(n *nodepb.NodeDef, in []output) *einsum.Sum {
	var operands [][]int64
	for _, x := range in {
		if x.shape == nil {
			return nil
		}
		operands = append(operands, x.shape)
	}
	sum, err := einsum.Of(string(n.Attr["equation"].GetS()), operands...)
	if err != nil {
		return nil
	}
	return sum
}

// recurrent returns the products of cuDNN's recurrent layers over x, [T,B,in], whose first
// states h are [layers*directions,B,H]: at each step, of each layer, the rows of a batch by
// the gates' weights, of the layer's input and of the state, both directions at once. Zero
// for other operators.
func recurrent(n *nodepb.NodeDef, in []output) (l layers) {
	backward := false
	switch n.Op {
	case "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3":
	case "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3":
		backward = true
	default:
		return l
	}
	if len(in) < 2 || len(in[0].shape) != 3 || len(in[1].shape) != 3 {
		return l
	}
	x, h := in[0].shape, in[1].shape
	gates, directions := int64(4), int64(1)
	switch string(n.Attr["rnn_mode"].GetS()) {
	case "gru":
		gates = 3
	case "rnn_relu", "rnn_tanh":
		gates = 1
	}
	if string(n.Attr["direction"].GetS()) == "bidirectional" {
		directions = 2
	}
	steps, batch, cells, hidden := x[0], x[1], h[0], h[2]
	if t := n.Attr["time_major"]; t != nil && !t.GetB() { // then states are [B,layers*directions,H]
		steps, batch, cells = x[1], x[0], h[1]
	}
	deep := cells / directions
	if deep < 1 || steps < 1 || max(steps, batch, cells, hidden, x[2]) > 1<<20 {
		return l
	}
	inputs := x[2] + (deep-1)*directions*hidden // of all layers
	l.GEMM = sound(graph.RecurrentStep(directions, batch, gates, hidden, inputs/deep))
	if backward {
		l.Batch *= 2 // the gradients of the input, and of the weights
	}
	l.times, l.reread = steps*deep, float64((steps-1)*deep*directions)*float64(gates*hidden*hidden)
	return l
}
