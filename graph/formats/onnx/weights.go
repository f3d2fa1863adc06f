package onnx

import "slices"

// weightSlots lists the inputs that hold weights to be learned. The statistics
// of a normalisation are weights that are not learned: they are not listed.
var weightSlots = map[string][]int{
	"Conv": {1, 2}, "ConvTranspose": {1, 2}, "DeformConv": {1, 3}, "ConvInteger": {1}, "QLinearConv": {3, 8}, "com.microsoft.FusedConv": {1, 2},
	"com.microsoft.QLinearConv": {3, 8}, "com.microsoft.NhwcConv": {1, 2}, "com.microsoft.NhwcFusedConv": {1, 2}, "com.microsoft.nchwc.Conv": {1, 2},
	"Gemm": {0, 1, 2}, "com.microsoft.FusedGemm": {0, 1, 2}, "MatMul": {0, 1}, "MatMulInteger": {0, 1}, "QLinearMatMul": {0, 3}, "Einsum": {0, 1, 2, 3},
	"FusedMatMul": {0, 1}, "com.microsoft.FusedMatMul": {0, 1}, "com.microsoft.TransposeMatMul": {0, 1}, "com.microsoft.MatMulIntegerToFloat": {1, 6}, "com.microsoft.DynamicQuantizeMatMul": {1, 4}, "com.microsoft.MatMulNBits": {1, 5}, "com.microsoft.GroupQueryAttention": {11, 14, 15}, "com.microsoft.MatMulBnb4": {1}, "com.microsoft.QGemm": {3, 6},
	"com.microsoft.FusedMatMulActivation": {0, 1}, "com.microsoft.GemmFastGelu": {1, 2}, "com.microsoft.MatMulInteger16": {1}, "com.microsoft.GatedRelativePositionBias": {1, 3, 4, 5}, "com.microsoft.RelativePositionBias": {0},
	"BatchNormalization": {1, 2}, "InstanceNormalization": {1, 2}, "LayerNormalization": {1, 2}, "GroupNormalization": {1, 2}, "RMSNormalization": {1}, "SimplifiedLayerNormalization": {1},
	"com.microsoft.LayerNormalization": {1, 2}, "com.microsoft.SimplifiedLayerNormalization": {1}, "com.microsoft.GroupNorm": {1, 2}, "com.microsoft.SkipGroupNorm": {1, 2, 4}, "com.microsoft.BiasAdd": {1}, "com.microsoft.BiasSplitGelu": {1},
	"com.microsoft.SkipLayerNormalization": {2, 3, 4}, "com.microsoft.SkipSimplifiedLayerNormalization": {2, 3}, "com.microsoft.EmbedLayerNormalization": {2, 3, 4, 5, 6},
	"com.microsoft.MoE": {2, 3, 4, 5, 6, 7}, "com.microsoft.QMoE": {2, 4, 5, 7, 8, 10}, "com.microsoft.GatherBlockQuantized": {0}, "com.microsoft.QAttention": {1, 2},
	"com.microsoft.Attention": {1, 2}, "CausalConvWithState": {1, 2}, "com.microsoft.CausalConvWithState": {1, 2}, "com.microsoft.MultiHeadAttention": {3}, "com.microsoft.BiasGelu": {1}, "com.microsoft.FastGelu": {1},
	"PRelu": {1}, "Gather": {0}, "LSTM": {1, 2, 3, 7}, "com.microsoft.DynamicQuantizeLSTM": {1, 2, 3, 7}, "GRU": {1, 2, 3}, "RNN": {1, 2, 3},
}

// vectorSlots lists the operators that a learned bias or scale may be written
// with. Numbers of one element there are constants.
var vectorSlots = map[string]bool{"Add": true, "Mul": true, "Sum": true, "com.microsoft.QLinearAdd": true, "com.microsoft.QLinearMul": true}

// views lists the operators through which a weight reaches the one that uses
// it: they change its form, not its values, or standardise them.
var views = map[string]bool{
	"BatchNormalization": true,
	"Identity":           true, "Reshape": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Cast": true, "CastLike": true, "Slice": true, "Split": true, "Concat": true,
	"Expand": true, "Tile": true, "Dropout": true, "DequantizeLinear": true, "QuantizeLinear": true, "com.microsoft.DequantizeLinear": true, "com.microsoft.QuantizeLinear": true,
	"qonnx.custom_op.general.Quant": true, "qonnx.custom_op.general.BipolarQuant": true, "qonnx.custom_op.general.IntQuant": true,
	"FakeQuantize": true, "org.openvinotoolkit.FakeQuantize": true, "com.microsoft.FakeQuant": true,
	"onnx.brevitas.Quant": true, "onnx.brevitas.BipolarQuant": true, "finn.custom_op.general.Quant": true, "finn.custom_op.general.BipolarQuant": true,
}

// learned says of a tensor whether a weight slot is reached from it through
// views: always, or for a tensor of several elements, which biases and scales
// are.
type learned struct {
	always, several bool
	// accumulated tensors are biases of quantised products, which have 32 bits.
	accumulated bool
	// statistic tensors are the mean or variance of a batch normalisation, which
	// a step does not learn.
	statistic bool
	// numbers counts the weights in a tensor of bytes into which they are packed, each
	// those in a byte; 0 for other tensors, each element of which is one.
	numbers, each int64
}

// findLearned returns what is learned among the tensors that nodes and their
// subgraphs read. order lists the nodes, producers first. A name that a
// subgraph hides is taken for the outer one, which at worst counts a constant
// among the weights.
func findLearned(nodes []node, order []int, found map[string]learned) {
	for k := len(order) - 1; k >= 0; k-- {
		n := &nodes[order[k]]
		for i := range n.attrs {
			if g := n.attrs[i].graph; g != nil {
				inner := make([]int, len(g.nodes))
				for j := range inner {
					inner[j] = j
				}
				findLearned(g.nodes, inner, found)
			}
		}
		key := n.key()
		var through learned
		if views[key] {
			for _, out := range n.out {
				through.always = through.always || found[out].always
				through.several = through.several || found[out].several
			}
		}
		for slot, name := range n.in {
			if name == "" {
				continue
			}
			l := found[name]
			if slices.Contains(weightSlots[key], slot) {
				l.always = true
				if key != "com.microsoft.MatMulNBits" || slot == 1 {
					numbers, each := packed(n, key)
					l.numbers, l.each = max(l.numbers, numbers), max(l.each, each)
				}
			}
			if key == "QLinearConv" && slot == 8 || key == "com.microsoft.QLinearConv" && slot == 8 || key == "com.microsoft.QGemm" && slot == 6 || dequantizes[key] && slot == 0 {
				l.accumulated = true
			}
			if vectorSlots[key] {
				l.several = true
			}
			if key == "BatchNormalization" && slot > 2 {
				l.statistic = true
			}
			if slot == 0 || key == "Concat" {
				l.always, l.several = l.always || through.always, l.several || through.several
			}
			found[name] = l
		}
	}
}

// packed says how many weights are packed in those of n, whose key is given, in all or
// in each byte; 0 and 0 for operators whose weights are not.
func packed(n *node, key string) (numbers, each int64) {
	switch key {
	case "com.microsoft.MatMulNBits", "com.microsoft.MatMulBnb4":
		rows, columns := n.int("K", 0), n.int("N", 0)
		if rows > 0 && columns > 0 && columns <= maxDim/rows { // its rule refuses others
			numbers = rows * columns
		}
	case "com.microsoft.QMoE":
		each = weightsPerByte(n, "expert_weight_bits")
	case "com.microsoft.GatherBlockQuantized":
		each = weightsPerByte(n, "bits")
	}
	return numbers, each
}

// params returns the parameters in a weight of n elements of type e.
func (l learned) params(e elem, n int64) int64 {
	switch {
	case l.numbers > 0:
		return l.numbers
	case l.each > 0 && byteSized(e):
		return l.each * n
	}
	return n
}

// isWeight reports whether a constant of type e with n elements is a weight.
func (l learned) isWeight(e elem, n int64) bool {
	return (e.float() || e.quantized() || e == elemInt32 && l.accumulated) && (l.always || l.several && n > 1)
}
