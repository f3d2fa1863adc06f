package graph

// kinds is the one table of op facts. Every other package asks FactsOf.
var kinds = table(
	class(ClassInput, 0, false, "Placeholder", "IteratorGetNext", "Input"),
	class(ClassVariable, 0, false, "VariableV2", "VarHandleOp", "Initializer"),
	class(ClassConst, 0, false, "Const", "Constant"),
	class(ClassMeta, 0, false, "Identity", "IdentityN", "ReadVariableOp", "Reshape", "Shape", "ShapeN", "Size", "Rank",
		"ExpandDims", "Squeeze", "Flatten", "NoOp", "ControlTrigger", "StopGradient", "PreventGradient",
		"BroadcastGradientArgs", "ConcatOffset", "InvertPermutation", "Unsqueeze", "Range"),
	class(ClassGEMM, 0, false, "MatMul", "BatchMatMul", "BatchMatMulV2", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul", "MatMulNBits"),
	class(ClassConv, 0, false, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv1D",
		"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", "ConvTranspose", "QLinearConv", "Conv3D", "ConvInteger", "DeformConv", "ConvGrad"),
	class(ClassElementwise, 1, true, "Add", "AddV2", "AddN", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Neg", "Maximum", "Minimum",
		"BiasAdd", "Relu", "ReluGrad", "Relu6", "Relu6Grad", "LeakyRelu", "Abs", "Sign", "Square", "SquaredDifference", "Cast", "Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual",
		"LogicalAnd", "LogicalOr", "LogicalNot", "Select", "Where", "ZerosLike", "OnesLike", "Fill", "Clip", "ClipByValue", "Floor", "Ceil", "Round", "Reciprocal", "DivNoNan", "LogicalXor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
		"IsNaN", "IsInf", "PRelu", "HardSwish", "ThresholdedRelu", "Shrink", "ElementwiseMean", "QuantizeLinear", "DequantizeLinear", "Bernoulli"),
	class(ClassElementwise, 4, true, "Sqrt", "Rsqrt", "SqrtGrad", "RsqrtGrad", "Exp", "Log", "Pow", "Sigmoid", "SigmoidGrad", "Tanh", "TanhGrad", "Erf", "Gelu", "FastGelu", "Softplus", "Elu", "Sin", "Cos", "Swish", "HardSigmoid",
		"Selu", "Celu", "Mish", "Softsign", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "BiasGelu", "QuickGelu", "RotaryEmbedding",
		"RandomUniform", "RandomStandardNormal", "Dropout",
		"LeakyReluGrad", "EluGrad", "SoftplusGrad", "GeluGrad", "FastGeluGrad", "SwishGrad", "HardSigmoidGrad", "ClipGrad", "ClipByValueGrad", "DropoutGrad", "ReciprocalGrad"),
	class(ClassReduction, 1, true, "Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ReduceSum", "ReduceMean", "ReduceMax", "BiasAddGrad", "L2Loss", "ArgMax", "ArgMin", "Cumsum", "TopK", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
		"CumProd", "DynamicQuantizeLinear"),
	class(ClassReduction, 5, false, "Softmax", "LogSoftmax", "SoftmaxGrad", "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyGrad", "InstanceNormGrad",
		"FusedBatchNorm", "FusedBatchNormGrad", "FusedBatchNormV3", "FusedBatchNormGradV3", "BatchNormalization", "LayerNormalization", "LayerNormGrad", "SkipLayerNormalization", "InstanceNormalization", "RMSNorm", "RMSNormGrad", "LRN", "LRNGrad",
		"GroupNormalization", "MeanVarianceNormalization", "LpNormalization", "EmbedLayerNormalization", "Hardmax", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"),
	class(ClassMove, 0, false, "ConcatV2", "Concat", "Split", "SplitV", "Slice", "StridedSlice", "StridedSliceGrad", "Pack", "Unpack", "Transpose", "Pad", "PadV2", "Tile", "Expand", "BroadcastTo", "Reverse", "ReverseV2", "ReverseSequence",
		"SpaceToBatchND", "BatchToSpaceND", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "OneHot", "Trilu", "EyeLike", "CenterCropPad", "Col2Im", "ResizeGrad", "UpsampleGrad"),
	class(ClassGather, 0, false, "Gather", "GatherV2", "GatherND", "EmbeddingLookup", "UnsortedSegmentSum", "ScatterAdd", "ScatterND", "ScatterSub", "DynamicStitch", "DynamicPartition", "Unique", "NonMaxSuppression", "GatherElements", "ScatterElements",
		"NonZero", "Compress"),
	class(ClassPool, 9, false, "MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "GlobalLpPool", "MaxUnpool"),
	class(ClassUpdate, 2, false, "ApplyGradientDescent", "AssignSub", "AssignAdd", "Assign", "SparseApplyGradientDescent"),
	class(ClassUpdate, 12, false, "ApplyAdam", "SparseApplyAdam"),
	class(ClassUpdate, 6, false, "ApplyMomentum", "ApplyAdagrad", "ApplyRMSProp", "SparseApplyAdagrad", "SparseApplyMomentum"),
)

type entry struct {
	facts Facts
	names []Kind
}

func class(c Class, flops float64, fusible bool, names ...Kind) entry {
	return entry{Facts{c, flops, fusible}, names}
}

func table(es ...entry) map[Kind]Facts {
	m := map[Kind]Facts{}
	for _, e := range es {
		for _, n := range e.names {
			if _, twice := m[n]; twice {
				panic("graph: kind " + string(n) + " has two entries")
			}
			m[n] = e.facts
		}
	}
	return m
}
