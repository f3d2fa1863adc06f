package train

import "placer/graph"

// rules is the one table of gradient functions. A kind without an entry gets
// fallback.
var rules = map[graph.Kind]rule{
	// elementwise.go
	"Add": add, "AddV2": add, "Sub": sub, "Mul": mul, "Div": div, "RealDiv": div, "DivNoNan": div,
	"Maximum": maximum, "Minimum": maximum, "Pow": pow, "SquaredDifference": squaredDifference,
	"AddN": addN, "BiasAdd": biasAdd, "Neg": neg, "Cast": cast, "Select": selectGrad, "Where": selectGrad,
	"Exp": expGrad, "Log": logGrad, "Square": square, "Abs": abs, "Sin": sin, "Cos": cos, "Erf": erf, "Fill": fill,
	"Sigmoid": fromOutput, "Tanh": fromOutput, "Relu": fromOutput, "Relu6": fromOutput, "Elu": fromOutput,
	"Sqrt": fromOutput, "Rsqrt": fromOutput, "Reciprocal": fromOutput,
	"LeakyRelu": fromInput, "Softplus": fromInput, "Gelu": fromInput, "FastGelu": fromInput, "Swish": fromInput,
	"HardSigmoid": fromInput, "Clip": fromInput, "ClipByValue": fromInput,
	"Dropout": dropout,

	// gemm.go
	"MatMul": matMul, "BatchMatMul": matMul, "BatchMatMulV2": batchMatMulV2, "Gemm": matMul, "Einsum": matMul,

	// conv.go
	"Conv2D": conv, "Conv1D": conv, "DepthwiseConv2dNative": depthwise, "ConvTranspose": convTranspose,
	"Conv2DBackpropInput": convBackpropInput,
	"MaxPool":             maxPool, "GlobalMaxPool": maxPool, "AvgPool": avgPool, "GlobalAveragePool": avgPool,

	// shape.go
	"Identity": identity, "IdentityN": identity, "ReadVariableOp": identity,
	"Reshape": reshape, "ExpandDims": reshape, "Squeeze": reshape, "Unsqueeze": reshape, "Flatten": reshape,
	"Transpose": transpose, "ConcatV2": concat, "Concat": concat, "Split": split, "SplitV": split,
	"Slice": slice, "StridedSlice": stridedSlice, "Pack": pack, "Unpack": unpack, "Pad": pad, "PadV2": pad,
	"Tile": tile, "Expand": broadcastTo, "BroadcastTo": broadcastTo,
	"Reverse": inverse("Reverse"), "ReverseV2": inverse("ReverseV2"), "ReverseSequence": inverse("ReverseSequence"),
	"SpaceToBatchND": inverse("BatchToSpaceND"), "BatchToSpaceND": inverse("SpaceToBatchND"),
	"DepthToSpace": inverse("SpaceToDepth"), "SpaceToDepth": inverse("DepthToSpace"),
	"Cumsum": inverse("Cumsum"),

	// reduce.go
	"Sum": sumGrad, "ReduceSum": sumGrad, "Mean": mean, "ReduceMean": mean,
	"Max": maxGrad, "Min": maxGrad, "ReduceMax": maxGrad, "L2Loss": l2Loss, "TopK": topK,

	// norm.go
	"Softmax": softmax, "LogSoftmax": logSoftmax,
	"SparseSoftmaxCrossEntropyWithLogits": crossEntropy, "SoftmaxCrossEntropyWithLogits": crossEntropy,
	"FusedBatchNorm": batchNorm("FusedBatchNormGrad"), "FusedBatchNormV3": batchNorm("FusedBatchNormGradV3"),
	"BatchNormalization": batchNorm("FusedBatchNormGrad"), "LayerNormalization": layerNorm("LayerNormGrad"),
	"InstanceNormalization": layerNorm("InstanceNormGrad"), "RMSNorm": layerNorm("RMSNormGrad"),
	"SkipLayerNormalization": skipLayerNorm, "LRN": lrn,

	// embed.go
	"Gather": gather, "GatherV2": gather, "EmbeddingLookup": gather, "GatherND": gatherND,
	"UnsortedSegmentSum": segmentSum, "DynamicStitch": dynamicStitch,
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
