package onnx

import "placer/graph"

// blockedRules are the operators that ONNX Runtime writes into a model that it has
// optimised for one kind of CPU: images whose channels are in blocks. Dimensions are as
// without blocks, but for channels, which fill whole blocks from the first convolution on.
var blockedRules = map[string]rule{
	"com.microsoft.nchwc.Conv":              {"Conv2D", conv},
	"com.microsoft.nchwc.MaxPool":           {"MaxPool", pool},
	"com.microsoft.nchwc.AveragePool":       {"AvgPool", pool},
	"com.microsoft.nchwc.GlobalMaxPool":     {"GlobalMaxPool", globalPool},
	"com.microsoft.nchwc.GlobalAveragePool": {"GlobalAveragePool", globalPool},
	"com.microsoft.nchwc.Upsample":          {"Upsample", blockedUpsample},
	"com.microsoft.nchwc.ReorderInput":      {"Transpose", reorderInput},
	"com.microsoft.nchwc.ReorderOutput":     {"Transpose", reorderOutput},
}

func blockedUpsample(c *call) {
	s, scales := c.ranked(0, 4, 4), c.perAxis("scales", 4, 1)
	out := graph.Shape{}
	for k, d := range s {
		out = append(out, c.mul(d, scales[k]))
	}
	c.set(0, c.elem(0), out)
}

// reorderInput takes an image [N,C,H,W], or [N,H,W,C], to blocks. How large these are the
// node does not say, so the channels that fill the last one are not counted.
func reorderInput(c *call) { c.set(0, c.elem(0), c.channelsFirst(c.ranked(0, 4, 4))) }

// reorderOutput takes an image in blocks back to one of so many channels.
func reorderOutput(c *call) {
	s := c.ranked(0, 4, 4)
	c.set(0, c.elem(0), c.asGiven(with(s, 1, c.node.int("channels", s[1]))))
}

// isChannelsLast reports whether the images of c's node have their channels last:
// operators of com.microsoft may, and some always do.
func (c *call) isChannelsLast() bool {
	switch c.node.key() {
	case "com.microsoft.NhwcConv", "com.microsoft.NhwcFusedConv", "com.microsoft.NhwcMaxPool":
		return true
	}
	return c.node.domain != "" && c.node.int("channels_last", 0) != 0
}

// channelsFirst returns the shape s of an image of c's node as [N,C,...].
func (c *call) channelsFirst(s graph.Shape) graph.Shape {
	if n := len(s) - 1; n > 1 && c.isChannelsLast() {
		return join(s[:1], s[n:], s[1:n])
	}
	return s
}

// asGiven undoes channelsFirst.
func (c *call) asGiven(s graph.Shape) graph.Shape {
	if len(s) > 2 && c.isChannelsLast() {
		return join(s[:1], s[2:], s[1:2])
	}
	return s
}
