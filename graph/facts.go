package graph

// kinds is the one table of op facts. Every other package asks FactsOf.
var kinds = table(
	class(ClassInput, 0, FuseNever, "Placeholder", "IteratorGetNext", "Input"),
	class(ClassVariable, 0, FuseNever, "VariableV2", "VarHandleOp"),
	class(ClassVariable, 0, FuseNever, "Initializer").inPlace(),
	class(ClassConst, 0, FuseNever, "Const"),
	class(ClassConst, 0, FuseNever, "Constant").inPlace(),
	class(ClassMeta, 0, FuseView, "Identity", "Reshape", "ExpandDims", "Squeeze", "Flatten", "StopGradient", "PreventGradient", "Unsqueeze", Columns),
	class(ClassMeta, 0, FuseNever, "IdentityN", "ReadVariableOp", "NoOp", "ControlTrigger", "BroadcastGradientArgs", "ConcatOffset", "InvertPermutation", "Range"),
	class(ClassMeta, 0, FuseNever, "Shape", "ShapeN", "Size", "Rank").readsShape(),
	class(ClassGEMM, 0, FuseAnchor, "MatMul", "BatchMatMul", "BatchMatMulV2", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul", "MatMulNBits"),
	class(ClassGEMM, 0, FuseNever, Attention, AttentionGrad, "GroupedMatMul", "GroupedMatMulGrad"),
	class(ClassConv, 0, FuseAnchor, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv1D",
		"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", "ConvTranspose", "QLinearConv", "Conv3D", "ConvInteger", "DeformConv", "ConvGrad"),
	class(ClassElementwise, 1, FuseLoop, "Add", "AddV2", "AddN", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Neg", "Maximum", "Minimum",
		"BiasAdd", "Relu", "ReluGrad", "Relu6", "Relu6Grad", "LeakyRelu", "Abs", "Sign", "Square", "SquaredDifference", "Cast", "Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual",
		"LogicalAnd", "LogicalOr", "LogicalNot", "Select", "Where", "ZerosLike", "OnesLike", "Fill", "Clip", "ClipByValue", "Floor", "Ceil", "Round", "Reciprocal", "DivNoNan", "LogicalXor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
		"IsNaN", "IsInf", "PRelu", "HardSwish", "ThresholdedRelu", "SquaredRelu", "Shrink", "ElementwiseMean", "QuantizeLinear", "DequantizeLinear", "Bernoulli"),
	class(ClassElementwise, 4, FuseLoop, "Sqrt", "Rsqrt", "SqrtGrad", "RsqrtGrad", "Exp", "Log", "Pow", "Sigmoid", "SigmoidGrad", "Tanh", "TanhGrad", "Erf", "Gelu", "FastGelu", "Softplus", "Elu", "Sin", "Cos", "Swish", "HardSigmoid",
		"Selu", "Celu", "Mish", "Softsign", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "BiasGelu", "QuickGelu", "RotaryEmbedding",
		"RandomUniform", "RandomStandardNormal", "Dropout",
		"LeakyReluGrad", "EluGrad", "SoftplusGrad", "GeluGrad", "FastGeluGrad", "SwishGrad", "SquaredReluGrad", "HardSigmoidGrad", "ClipGrad", "ClipByValueGrad", "DropoutGrad", "ReciprocalGrad"),
	class(ClassElementwise, 2, FuseNever, CausalConv),
	class(ClassReduction, 1, FuseReduce, "Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ReduceSum", "ReduceMean", "ReduceMax", "BiasAddGrad", "L2Loss", "ArgMax", "ArgMin", "Cumsum", "TopK", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
		"CumProd", "DynamicQuantizeLinear"),
	class(ClassReduction, 5, FuseNever, "Softmax", "LogSoftmax", "SoftmaxGrad", "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyGrad", "InstanceNormGrad",
		"FusedBatchNormGrad", "FusedBatchNormGradV3", "LayerNormalization", "LayerNormGrad", "SkipLayerNormalization", "InstanceNormalization", "RMSNorm", "RMSNormGrad", "LRN", "LRNGrad",
		"GroupNormalization", "MeanVarianceNormalization", "LpNormalization", "EmbedLayerNormalization", "Hardmax", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"),
	class(ClassReduction, 5, FuseAnchor, "FusedBatchNorm", "FusedBatchNormV3", "BatchNormalization"),
	class(ClassMove, 0, FuseLoop, "ConcatV2", "Concat", "Split", "SplitV", "Slice", "StridedSlice", "StridedSliceGrad", "Pack", "Unpack", "Transpose", "Pad", "PadV2", "Tile", "Expand", "BroadcastTo", "Reverse", "ReverseV2"),
	class(ClassMove, 0, FuseNever, "ReverseSequence",
		"SpaceToBatchND", "BatchToSpaceND", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "OneHot", "Trilu", "EyeLike", "CenterCropPad", "Col2Im", "ResizeGrad", "UpsampleGrad"),
	class(ClassGather, 0, FuseNever, "Gather", "GatherV2", "GatherND", "EmbeddingLookup", "EmbeddingBag", "UnsortedSegmentSum", "ScatterAdd", "ScatterND", "ScatterSub", "DynamicStitch", "DynamicPartition", "Unique", "NonMaxSuppression", "GatherElements", "ScatterElements",
		"NonZero", "Compress"),
	class(ClassPool, 9, FuseNever, "MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "GlobalLpPool", "MaxUnpool"),
	class(ClassUpdate, 2, FuseNever, "ApplyGradientDescent", "AssignSub", "AssignAdd", "Assign", "SparseApplyGradientDescent"),
	class(ClassUpdate, 12, FuseNever, "ApplyAdam", "SparseApplyAdam", "ApplyAdaMax", "ApplyNAdam", "ApplyRAdam", "ApplyAdadelta"),
	class(ClassUpdate, 6, FuseNever, "ApplyMomentum", "ApplyAdagrad", "ApplyAdagradV2", "ApplyRMSProp", "ApplyCenteredRMSProp", "SparseApplyAdagrad", "SparseApplyMomentum",
		"ApplyFtrl", "ApplyASGD", "ApplyRprop", "ApplyAdafactor", "ApplyMuon"),
)

type entry struct {
	facts Facts
	names []Kind
}

func class(c Class, flops float64, fuse FuseRole, names ...Kind) entry {
	return entry{Facts{Class: c, FLOPsPerElement: flops, Fuse: fuse}, names}
}

func (e entry) readsShape() entry { e.facts.ReadsShape = true; return e }

func (e entry) inPlace() entry { e.facts.InPlace = true; return e }

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
