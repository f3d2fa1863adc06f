package onnx

import "placer/graph"

// gradientRules are the operators of training graphs: gradients, which have the
// shapes of what they are gradients of, and optimizers.
var gradientRules = merge(
	msGradients(1, "ReluGrad", "SigmoidGrad", "TanhGrad", "GeluGrad", "FastGeluGrad", "QuickGeluGrad", "LeakyReluGrad", "EluGrad", "SoftmaxGrad", "SoftmaxGrad_13", "LogSoftmaxGrad", "LogSoftmaxGrad_13",
		"BiasGeluGrad_dX", "BiasFastGeluGrad_dX", "SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad", "SparseSoftmaxCrossEntropyGrad"),
	msGradients(0, "DropoutGrad", "BitmaskDropoutGrad"),
	map[string]rule{
		"com.microsoft.LayerNormalizationGrad": {"LayerNormGrad", func(c *call) { gradients(c, 1, 2, 2) }}, "com.microsoft.InvertibleLayerNormalizationGrad": {"LayerNormGrad", func(c *call) { gradients(c, 1, 2, 3) }},
		"com.microsoft.SimplifiedLayerNormalizationGrad": {"RMSNormGrad", func(c *call) { gradients(c, 1, 2) }}, "com.microsoft.BatchNormalizationGrad": {"FusedBatchNormGrad", func(c *call) { gradients(c, 1, 2, 2) }},
		"com.microsoft.ConvGrad":   {"ConvGrad", convGrad},
		"com.microsoft.GatherGrad": {"ScatterAdd", func(c *call) { c.set(0, c.elem(2), append(graph.Shape{}, c.ints(0)...)) }}, "com.microsoft.SliceGrad": {"StridedSliceGrad", func(c *call) { c.set(0, c.elem(0), append(graph.Shape{}, c.ints(1)...)) }},
		"com.microsoft.GatherElementsGrad": {"ScatterAdd", func(c *call) { c.set(0, c.elem(0), append(graph.Shape{}, c.ints(1)...)) }},
		"com.microsoft.AdamOptimizer":      {"ApplyAdam", recorded}, "com.microsoft.SGDOptimizer": {"ApplyGradientDescent", recorded}, "com.microsoft.LambOptimizer": {"ApplyAdam", recorded},
		"ai.onnx.preview.training.Adam": {"ApplyAdam", optimizer}, "ai.onnx.preview.training.Momentum": {"ApplyMomentum", optimizer}, "ai.onnx.preview.training.Adagrad": {"ApplyAdagrad", optimizer},
		"com.microsoft.InPlaceAccumulator": {"AssignAdd", like}, "com.microsoft.GradientAccumulator": {"AssignAdd", like}, "com.microsoft.ZeroGradient": {"Assign", like},
	},
)

// msGradients makes rules for gradients that have the shape of input x.
func msGradients(x int, names ...string) map[string]rule {
	m := map[string]rule{}
	for _, n := range names {
		m["com.microsoft."+n] = rule{graph.Kind(n), func(c *call) { gradients(c, x) }}
	}
	return m
}

// gradients gives output k the type and shape of input of[k].
func gradients(c *call, of ...int) {
	for k := range min(len(of), len(c.out)) {
		c.set(k, c.elem(of[k]), c.shape(of[k]))
	}
}

// convGrad: dY, X, W to dX, dW, dB: two products of the forward's size.
func convGrad(c *call) {
	dy, x, w := c.ranked(0, 3, maxRank), c.ranked(1, 3, maxRank), c.ranked(2, 3, maxRank)
	gradients(c, 1, 2)
	c.set(2, c.elem(2), graph.Shape{w[0]})
	groups := c.node.int("group", 1)
	if groups < 1 || w[0]%groups != 0 || len(dy) != len(x) {
		c.fail("gradient %v of %v by %v in %d groups", dy, x, w, groups)
	}
	rows := c.mul(dy[0], c.product(dy[2:]))
	c.multiply(groups, rows, c.product(w[1:]), w[0]/groups)
	c.multiply(groups, c.product(w[1:]), w[0]/groups, rows)
}

// optimizer: the outputs are the updated tensors and their slots; the inputs
// end with gradients and slots, of the same shapes in the same order.
func optimizer(c *call) {
	for k := range c.out {
		if i := len(c.in) - len(c.out) + k; i >= 0 && c.has(i) {
			c.set(k, c.elem(i), c.shape(i))
		}
	}
}

// recorded leaves the outputs to the shapes recorded in the file.
func recorded(*call) {}
