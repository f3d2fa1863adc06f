package train

import "placer/graph"

// rules is the one table of gradient functions. A kind without an entry gets
// fallback.
var rules = map[graph.Kind]rule{
	// elementwise.go
	"Add": binary(add), "AddV2": binary(add), "Sub": binary(sub), "Mul": binary(mul), "Div": binary(div), "RealDiv": binary(div), "DivNoNan": binary(div),
	"Maximum": binary(maximum), "Minimum": binary(maximum), "Pow": binary(pow), "SquaredDifference": binary(squaredDifference),
	"AddN": addN, "BiasAdd": atLeast(2, biasAdd), "Neg": first(neg), "Cast": first(cast), "Select": atLeast(3, selectGrad), "Where": atLeast(3, selectGrad),
	"Exp": scaled(result), "Log": scaled(reciprocal), "Square": scaled(twice), "Abs": scaled(sign), "Sin": scaled(cosine), "Cos": scaled(minusSine), "Erf": scaled(bell), "Fill": fill,
	"Sigmoid": first(fromOutput), "Tanh": first(fromOutput), "Relu": first(fromOutput), "Relu6": first(fromOutput), "Elu": first(fromOutput),
	"Sqrt": first(fromOutput), "Rsqrt": first(fromOutput), "Reciprocal": first(fromOutput),
	"LeakyRelu": first(fromInput), "Softplus": first(fromInput), "Gelu": first(fromInput), "FastGelu": first(fromInput), "Swish": first(fromInput), "SquaredRelu": first(fromInput),
	"HardSigmoid": first(fromInput), "Clip": first(fromInput), "ClipByValue": first(fromInput),
	"Dropout": first(dropout),

	// gemm.go
	"MatMul": atLeast(2, matMul), "BatchMatMul": atLeast(2, matMul), "BatchMatMulV2": binary(batchMatMulV2), "Gemm": atLeast(2, matMul), "Einsum": atLeast(2, matMul),

	// attention.go
	graph.Attention: attention,

	// conv.go
	"Conv2D": atLeast(2, conv), "Conv1D": atLeast(2, conv), "DepthwiseConv2dNative": atLeast(2, depthwise), "ConvTranspose": atLeast(2, convTranspose),
	"Conv2DBackpropInput": atLeast(3, convBackpropInput),
	"MaxPool":             first(maxPool), "GlobalMaxPool": first(maxPool), "AvgPool": first(avgPool), "GlobalAveragePool": first(avgPool),

	// shape.go
	"Identity": identity, "IdentityN": identity, "ReadVariableOp": identity,
	"Reshape": first(reshape), "ExpandDims": first(reshape), "Squeeze": first(reshape), "Unsqueeze": first(reshape), "Flatten": first(reshape),
	"Transpose": first(transpose), "ConcatV2": concat, "Concat": concat, "Split": split, "SplitV": split,
	"Slice": first(slice), "StridedSlice": first(stridedSlice), "Pack": pack, "Unpack": first(unpack), "Pad": first(pad), "PadV2": first(pad),
	"Tile": first(tile), "Expand": first(broadcastTo), "BroadcastTo": first(broadcastTo),
	"Reverse": first(inverse("Reverse")), "ReverseV2": first(inverse("ReverseV2")), "ReverseSequence": first(inverse("ReverseSequence")),
	"SpaceToBatchND": first(inverse("BatchToSpaceND")), "BatchToSpaceND": first(inverse("SpaceToBatchND")),
	"DepthToSpace": first(inverse("SpaceToDepth")), "SpaceToDepth": first(inverse("DepthToSpace")),
	"Cumsum": first(inverse("Cumsum")),

	// reduce.go
	"Sum": first(sumGrad), "ReduceSum": first(sumGrad), "Mean": first(mean), "ReduceMean": first(mean),
	"Max": first(maxGrad), "Min": first(maxGrad), "ReduceMax": first(maxGrad), "L2Loss": first(l2Loss), "TopK": first(topK),

	// norm.go
	"Softmax": first(softmax), "LogSoftmax": first(logSoftmax),
	"SparseSoftmaxCrossEntropyWithLogits": first(crossEntropy), "SoftmaxCrossEntropyWithLogits": first(crossEntropy),
	"FusedBatchNorm": atLeast(3, batchNorm("FusedBatchNormGrad")), "FusedBatchNormV3": atLeast(3, batchNorm("FusedBatchNormGradV3")),
	"BatchNormalization": atLeast(3, batchNorm("FusedBatchNormGrad")), "LayerNormalization": atLeast(1, layerNorm("LayerNormGrad")),
	"InstanceNormalization": atLeast(1, layerNorm("InstanceNormGrad")), "RMSNorm": atLeast(1, layerNorm("RMSNormGrad")),
	"SkipLayerNormalization": atLeast(3, skipLayerNorm), "LRN": first(lrn),

	// embed.go
	"Gather": first(gather), "GatherV2": first(gather), "EmbeddingLookup": first(gather), "GatherND": first(gatherND),
	"UnsortedSegmentSum": first(segmentSum), "DynamicStitch": atLeast(2, dynamicStitch),
}

// first is for rules that give input 0 alone.
func first(f rule) rule {
	return func(s *step) {
		if s.want(0) {
			f(s)
		}
	}
}

// binary is for rules of two operands. ONNX allows more for some kinds; these
// get fallback.
func binary(f rule) rule {
	return func(s *step) {
		if len(s.in) != 2 {
			fallback(s)
			return
		}
		f(s)
	}
}

// atLeast is for rules that need n operands; fallback does with fewer.
func atLeast(n int, f rule) rule {
	return func(s *step) {
		if len(s.in) < n {
			fallback(s)
			return
		}
		f(s)
	}
}

// stops lists kinds through which no gradient passes: their outputs do not
// depend on their inputs' values, or are steps of them.
var stops = map[graph.Kind]bool{
	"StopGradient": true, "PreventGradient": true,
	"Shape": true, "ShapeN": true, "Size": true, "Rank": true, "ZerosLike": true, "OnesLike": true, "Range": true,
	"BroadcastGradientArgs": true, "ConcatOffset": true, "InvertPermutation": true, "NoOp": true, "ControlTrigger": true,
	"ArgMax": true, "ArgMin": true, "Greater": true, "GreaterEqual": true, "Less": true, "LessEqual": true,
	"Equal": true, "NotEqual": true, "LogicalAnd": true, "LogicalOr": true, "LogicalNot": true, "All": true, "Any": true,
	"Floor": true, "Ceil": true, "Round": true, "Sign": true, "FloorDiv": true, "FloorMod": true, "Mod": true,
	"RandomUniform": true, "RandomStandardNormal": true, "OneHot": true, "Unique": true, "NonMaxSuppression": true,
	"MatMulInteger": true, "QLinearMatMul": true, "QLinearConv": true,
}
