package torchtrace

import (
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
)

// kinds are the graph's names of PyTorch's operators, without "aten::" and the
// underscore of in-place forms.
func kinds() map[string]graph.Kind {
	return map[string]graph.Kind{
		"addmm": "MatMul", "mm": "MatMul", "bmm": "BatchMatMul", "baddbmm": "BatchMatMul", "mv": "MatMul", "addmv": "MatMul", "_scaled_mm": "MatMul", "_int_mm": "MatMul", "_addmm_activation": "MatMul", "_grouped_mm": "GroupedMatMul", "_scaled_grouped_mm": "GroupedMatMul",
		"convolution": "Conv2D", "_convolution": "Conv2D", "conv2d": "Conv2D", "cudnn_convolution": "Conv2D", "mkldnn_convolution": "Conv2D", "thnn_conv2d": "Conv2D", "convolution_backward": "Conv2DBackpropInput",
		"convolution_overrideable": "Conv2D", "cudnn_convolution_relu": "Conv2D", "cudnn_convolution_add_relu": "Conv2D", "miopen_convolution": "Conv2D", "miopen_depthwise_convolution": "Conv2D", "_slow_conv2d_forward": "Conv2D",
		"slow_conv3d_forward": "Conv2D", "slow_conv_dilated2d": "Conv2D", "slow_conv_dilated3d": "Conv2D", "_conv_depthwise2d": "Conv2D", "conv_depthwise3d": "Conv2D",
		"cudnn_convolution_transpose": "ConvTranspose", "miopen_convolution_transpose": "ConvTranspose", "slow_conv_transpose2d": "ConvTranspose", "slow_conv_transpose3d": "ConvTranspose",
		"add": "Add", "sub": "Sub", "mul": "Mul", "div": "RealDiv", "neg": "Neg", "relu": "Relu", "threshold_backward": "ReluGrad", "clamp_min": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "pow": "Pow", "gelu": "Gelu", "silu": "Swish",
		"copy": "Cast", "to": "Cast", "_to_copy": "Cast", "clone": "Cast", "fill": "Fill", "zero": "Fill", "ones_like": "OnesLike", "zeros_like": "ZerosLike",
		"sum": "Sum", "mean": "Mean", "max": "Max", "argmax": "ArgMax", "_softmax": "Softmax", "_log_softmax": "LogSoftmax", "native_layer_norm": "LayerNormalization", "cudnn_batch_norm": "FusedBatchNorm", "native_batch_norm": "FusedBatchNorm", "cudnn_batch_norm_backward": "FusedBatchNormGrad", "native_batch_norm_backward": "FusedBatchNormGrad",
		"nll_loss_forward": "NegativeLogLikelihoodLoss", "nll_loss_backward": "SoftmaxCrossEntropyGrad", "_log_softmax_backward_data": "SoftmaxGrad",
		"max_pool2d_with_indices": "MaxPool", "max_pool2d_with_indices_backward": "MaxPoolGrad", "avg_pool2d": "AvgPool", "adaptive_avg_pool2d": "AvgPool", "_adaptive_avg_pool2d": "AvgPool",
		"view": "Reshape", "_unsafe_view": "Reshape", "reshape": "Reshape", "as_strided": "Reshape", "t": "Reshape", "transpose": "Reshape", "permute": "Reshape", "expand": "Reshape", "slice": "Reshape", "select": "Reshape", "squeeze": "Squeeze", "unsqueeze": "ExpandDims", "detach": "Identity", "alias": "Identity", "_reshape_alias": "Reshape",
		"resolve_conj": "Identity", "resolve_neg": "Identity", "conj": "Identity", "lift_fresh": "Identity", "view_as": "Reshape", "expand_as": "Reshape", "unflatten": "Reshape", "flatten": "Reshape", "movedim": "Reshape", "narrow": "Reshape", "unbind": "Reshape", "split": "Reshape", "split_with_sizes": "Reshape", "chunk": "Reshape", "unfold": "Reshape", "diagonal": "Reshape", "swapaxes": "Reshape", "view_as_real": "Reshape", "view_as_complex": "Reshape", "_local_scalar_dense": "NoOp", "item": "NoOp",
		"cat": "ConcatV2", "embedding": "GatherV2", "index_select": "GatherV2", "gather": "GatherV2", "empty": "NoOp", "empty_like": "NoOp", "empty_strided": "NoOp", "resize": "NoOp", "set": "NoOp", "record_stream": "NoOp", "result_type": "NoOp",
	}
}

// kindOf returns the graph's name of an operator.
func kindOf(known map[string]graph.Kind, name string) graph.Kind {
	short, ok := strings.CutPrefix(name, "aten::")
	if !ok {
		return graph.Kind(foreign.Clean(name))
	}
	if k, ok := known[short]; ok {
		return k
	}
	if k, ok := known[strings.TrimSuffix(short, "_")]; ok {
		return k
	}
	if slices.ContainsFunc([]string{"_scaled_dot_product_", "_flash_attention_", "_efficient_attention_", "_cudnn_attention_"}, func(x string) bool { return strings.HasPrefix(short, x) }) {
		if strings.Contains(short, "backward") {
			return graph.AttentionGrad
		}
		return graph.Attention
	}
	return graph.Kind(foreign.Clean(name))
}
