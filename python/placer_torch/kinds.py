"""What is known of ATen ops: their kind in a graph file, which are views, which draw random numbers."""

from __future__ import annotations

import torch

# ATen base name -> kind of docs/formats.md, where the meaning is the same.
KINDS = {
    "mm": "MatMul", "addmm": "MatMul", "bmm": "BatchMatMulV2", "baddbmm": "BatchMatMulV2", "mv": "MatMul", "dot": "MatMul", "_scaled_mm": "MatMul", "_int_mm": "MatMul",
    "_grouped_mm": "GroupedMatMul", "_scaled_grouped_mm": "GroupedMatMul", "transformers.grouped_mm_fallback": "GroupedMatMul", "transformers.grouped_mm_fallback_backward": "GroupedMatMulGrad",
    "convolution": "Conv2D", "_convolution": "Conv2D", "convolution_backward": "ConvGrad",
    "add": "AddV2", "sub": "Sub", "rsub": "Sub", "mul": "Mul", "div": "RealDiv", "neg": "Neg", "abs": "Abs", "sign": "Sign", "sgn": "Sign",
    "maximum": "Maximum", "minimum": "Minimum", "clamp": "Clip", "clamp_min": "Maximum", "clamp_max": "Minimum",
    "relu": "Relu", "threshold_backward": "ReluGrad", "leaky_relu": "LeakyRelu", "leaky_relu_backward": "LeakyReluGrad",
    "hardtanh": "Relu6", "hardtanh_backward": "Relu6Grad", "elu": "Elu", "elu_backward": "EluGrad",
    "gelu": "Gelu", "gelu_backward": "GeluGrad", "silu": "Swish", "silu_backward": "SwishGrad", "softplus": "Softplus", "softplus_backward": "SoftplusGrad",
    "hardswish": "HardSwish", "hardsigmoid": "HardSigmoid", "hardsigmoid_backward": "HardSigmoidGrad", "mish": "Mish",
    "sigmoid": "Sigmoid", "sigmoid_backward": "SigmoidGrad", "tanh": "Tanh", "tanh_backward": "TanhGrad",
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "pow": "Pow", "erf": "Erf", "sin": "Sin", "cos": "Cos", "reciprocal": "Reciprocal",
    "floor": "Floor", "ceil": "Ceil", "round": "Round", "where": "Select", "masked_fill": "Select", "_to_copy": "Cast",
    "eq": "Equal", "ne": "NotEqual", "lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual",
    "logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_not": "LogicalNot", "logical_xor": "LogicalXor",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_not": "BitwiseNot", "bitwise_xor": "BitwiseXor",
    "isnan": "IsNaN", "isinf": "IsInf",
    "zeros_like": "ZerosLike", "ones_like": "OnesLike", "zeros": "Fill", "ones": "Fill", "full": "Fill", "full_like": "Fill", "fill": "Fill",
    "scalar_tensor": "Fill", "new_zeros": "Fill", "new_ones": "Fill", "new_full": "Fill", "arange": "Range", "empty": "NoOp", "empty_like": "NoOp",
    "sum": "Sum", "mean": "Mean", "amax": "Max", "amin": "Min", "max": "Max", "min": "Min", "prod": "Prod", "any": "Any", "all": "All",
    "linalg_vector_norm": "ReduceL2", "argmax": "ArgMax", "argmin": "ArgMin", "cumsum": "Cumsum", "topk": "TopK",
    "_softmax": "Softmax", "_safe_softmax": "Softmax", "_softmax_backward_data": "SoftmaxGrad", "_log_softmax": "LogSoftmax", "_log_softmax_backward_data": "SoftmaxGrad",
    "nll_loss_forward": "NegativeLogLikelihoodLoss", "nll_loss_backward": "SoftmaxCrossEntropyGrad", "nll_loss2d_forward": "NegativeLogLikelihoodLoss", "nll_loss2d_backward": "SoftmaxCrossEntropyGrad",
    "native_layer_norm": "LayerNormalization", "native_layer_norm_backward": "LayerNormGrad",
    "_fused_rms_norm": "RMSNorm", "_fused_rms_norm_backward": "RMSNormGrad",
    "native_group_norm": "GroupNormalization", "native_group_norm_backward": "LayerNormGrad",
    "native_batch_norm": "FusedBatchNormV3", "_native_batch_norm_legit_functional": "FusedBatchNormV3", "_native_batch_norm_legit": "FusedBatchNormV3",
    "_native_batch_norm_legit_no_training": "FusedBatchNormV3", "_batch_norm_with_update_functional": "FusedBatchNormV3", "native_batch_norm_backward": "FusedBatchNormGradV3", "batch_norm_backward": "FusedBatchNormGradV3",
    "cat": "ConcatV2", "stack": "Pack", "clone": "Transpose", "constant_pad_nd": "Pad", "repeat": "Tile", "flip": "ReverseV2", "roll": "ReverseV2",
    "slice_backward": "StridedSliceGrad", "select_backward": "StridedSliceGrad", "slice_scatter": "StridedSliceGrad", "select_scatter": "StridedSliceGrad",
    "tril": "Trilu", "triu": "Trilu", "one_hot": "OneHot",
    "embedding": "GatherV2", "embedding_dense_backward": "UnsortedSegmentSum",
    "_embedding_bag": "EmbeddingBag", "_embedding_bag_forward_only": "EmbeddingBag", "_embedding_bag_backward": "UnsortedSegmentSum", "index_select": "GatherV2", "index": "GatherND", "gather": "GatherElements",
    "index_put": "ScatterND", "_unsafe_index_put": "ScatterND", "index_add": "ScatterAdd", "scatter": "ScatterElements", "scatter_add": "ScatterElements",
    "max_pool2d_with_indices": "MaxPool", "max_pool2d_with_indices_backward": "MaxPoolGrad", "avg_pool2d": "AvgPool", "avg_pool2d_backward": "AvgPoolGrad",
    "_adaptive_avg_pool2d": "AvgPool", "_adaptive_avg_pool2d_backward": "AvgPoolGrad",
    "upsample_nearest2d": "Upsample", "upsample_bilinear2d": "Upsample", "upsample_nearest2d_backward": "UpsampleGrad", "upsample_bilinear2d_backward": "UpsampleGrad",
    "native_dropout": "Dropout", "native_dropout_backward": "DropoutGrad", "bernoulli": "Bernoulli", "rand": "RandomUniform", "rand_like": "RandomUniform", "randn": "RandomStandardNormal", "randn_like": "RandomStandardNormal",
}  # fmt: skip

# Operations an element of the largest tensor touched, of kinds not listed: 1.
# The figures are those of placer's table of op facts.
_FOUR = "Sqrt Rsqrt Exp Log Pow Sigmoid SigmoidGrad Tanh TanhGrad Erf Gelu GeluGrad Softplus SoftplusGrad Elu EluGrad Sin Cos Swish SwishGrad HardSigmoid HardSigmoidGrad Mish LeakyReluGrad Reciprocal Dropout DropoutGrad RandomUniform RandomStandardNormal"
_FIVE = "Softmax LogSoftmax SoftmaxGrad SoftmaxCrossEntropyGrad LayerNormalization LayerNormGrad RMSNorm RMSNormGrad GroupNormalization NegativeLogLikelihoodLoss FusedBatchNormV3 FusedBatchNormGradV3"
_NONE = "Reshape ConcatV2 Pack Transpose Pad Tile ReverseV2 StridedSliceGrad Trilu OneHot GatherV2 GatherND GatherElements ScatterND NoOp Range Fill"
PER_ELEMENT: dict[str, float] = {
    **dict.fromkeys(_FOUR.split(), 4.0),
    **dict.fromkeys(_FIVE.split(), 5.0),
    **dict.fromkeys(_NONE.split(), 0.0),
    **dict.fromkeys("MaxPool MaxPoolGrad AvgPool AvgPoolGrad".split(), 9.0),
}

GATHERS = {"GatherV2", "GatherND", "GatherElements"}

DTYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64",
    torch.int8: "i8", torch.uint8: "i8", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool",
    torch.float8_e4m3fn: "f8", torch.float8_e5m2: "f8",
}  # fmt: skip


def base(target: str) -> str:
    """ "aten.add.Tensor" -> "add"; other namespaces keep theirs."""
    parts = target.split(".")
    return parts[1] if parts[0] in ("aten", "prims") else ".".join(parts[:-1])


def is_attention(name: str) -> bool:
    """Whether an ATen op of this base name is attention in one kernel, or its gradient."""
    return name.startswith(("_scaled_dot_product_", "_flash_attention_", "_efficient_attention_", "_cudnn_attention_"))


def kind(target: str, rank: int) -> str:
    """The kind of an ATen op whose first output has this rank."""
    name = base(target)
    if is_attention(name):
        return "AttentionGrad" if name.endswith("_backward") else "Attention"
    k = KINDS.get(name, "aten." + name if target.startswith("aten.") else name)
    if k == "Conv2D" and rank in (3, 5):
        k = "Conv1D" if rank == 3 else "Conv3D"
    return k


# Their schema does not say that they return a view.
_UNDECLARED_VIEWS = {"aten._unsafe_view.default", "aten._reshape_alias.default"}


def is_view(target: torch._ops.OpOverload) -> bool:
    if str(target) in _UNDECLARED_VIEWS:
        return True
    returns = target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def is_random(target: torch._ops.OpOverload) -> bool:
    return torch.Tag.nondeterministic_seeded in target.tags
