package onnx

import "placer/graph"

var normRules = merge(
	map[string]rule{
		"BatchNormalization": {"BatchNormalization", batchNorm}, "com.microsoft.BatchNormInternal": {"BatchNormalization", batchNorm},
		"LayerNormalization": {"LayerNormalization", layerNorm}, "SimplifiedLayerNormalization": {"RMSNorm", layerNorm}, "RMSNormalization": {"RMSNorm", layerNorm},
		"com.microsoft.SimplifiedLayerNormalization": {"RMSNorm", layerNorm}, "com.microsoft.LayerNormalization": {"LayerNormalization", layerNorm},
		"com.microsoft.SkipLayerNormalization": {"SkipLayerNormalization", skipLayerNorm}, "com.microsoft.SkipSimplifiedLayerNormalization": {"SkipLayerNormalization", skipLayerNorm},
		"com.microsoft.EmbedLayerNormalization": {"EmbedLayerNormalization", embedLayerNorm},
		"com.microsoft.GroupNorm":               {"GroupNormalization", like}, "com.microsoft.SkipGroupNorm": {"GroupNormalization", like},
	},
	each(like, "InstanceNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization", "LpNormalization"),
)

// batchNorm: y, then statistics of one number a channel.
func batchNorm(c *call) {
	c.set(0, c.elem(0), c.ranked(0, 1, maxRank))
	for k := 1; k < len(c.out); k++ {
		c.set(k, c.elem(3), c.shape(3))
	}
}

// layerNorm: y, mean and inverse deviation, whose normalised axes are 1. That of root
// mean squares has no mean.
func layerNorm(c *call) {
	s := c.ranked(0, 1, maxRank)
	c.set(0, c.elem(0), s)
	stats := append(graph.Shape{}, s...)
	for k := c.axis(c.node.int("axis", -1), len(s)); k < len(s); k++ {
		stats[k] = 1
	}
	c.set(1, elemFloat, stats)
	c.set(2, elemFloat, stats)
}

// skipLayerNorm: y, two statistics, and the sum of input and skip.
func skipLayerNorm(c *call) {
	s := c.ranked(0, 1, maxRank)
	stats := with(s, len(s)-1, 1)
	c.set(0, c.elem(0), s)
	c.set(1, elemFloat, stats)
	c.set(2, elemFloat, stats)
	c.set(3, c.elem(0), s)
}

// embedLayerNorm: ids [B,S] to the normalised sum of embeddings [B,S,H], the
// mask's lengths [B], and the sum itself.
func embedLayerNorm(c *call) {
	ids, word := c.ranked(0, 2, 2), c.ranked(2, 2, 2)
	out := graph.Shape{ids[0], ids[1], word[1]}
	c.set(0, c.elem(2), out)
	c.set(1, elemInt32, graph.Shape{ids[0]})
	c.set(2, c.elem(2), out)
}
