package onnx

import (
	"placer/graph"
	"placer/units"
)

var windowRules = map[string]rule{
	"Conv": {"Conv2D", conv}, "com.microsoft.FusedConv": {"Conv2D", conv},
	"ConvInteger":               {"ConvInteger", func(c *call) { convOf(c, 0, 1, none, elemInt32) }},
	"QLinearConv":               {"QLinearConv", func(c *call) { convOf(c, 0, 3, 8, c.elem(7)) }},
	"com.microsoft.QLinearConv": {"QLinearConv", func(c *call) { convOf(c, 0, 3, 8, c.elem(7)) }},
	"com.microsoft.NhwcConv":    {"Conv2D", conv}, "com.microsoft.NhwcFusedConv": {"Conv2D", conv},
	"com.microsoft.NhwcMaxPool":              {"MaxPool", pool},
	"DeformConv":                             {"DeformConv", func(c *call) { convOf(c, 0, 1, 3, c.elem(0)) }},
	"ConvTranspose":                          {"ConvTranspose", convTranspose},
	"MaxPool":                                {"MaxPool", pool},
	"AveragePool":                            {"AvgPool", pool},
	"LpPool":                                 {"LpPool", pool},
	"com.microsoft.QLinearAveragePool":       {"AvgPool", pool},
	"GlobalAveragePool":                      {"GlobalAveragePool", globalPool},
	"GlobalMaxPool":                          {"GlobalMaxPool", globalPool},
	"GlobalLpPool":                           {"GlobalLpPool", globalPool},
	"com.microsoft.QLinearGlobalAveragePool": {"GlobalAveragePool", globalPool},
	"MaxUnpool":                              {"MaxUnpool", maxUnpool},
	"MaxRoiPool":                             {"MaxRoiPool", maxRoiPool},
	"RoiAlign":                               {"RoiAlign", roiAlign},
	"Col2Im":                                 {"Col2Im", col2Im},
}

// window is the sliding window of a convolution or a pool, per spatial axis.
type window struct {
	kernel, stride, dilation, begin, end []int64
	same, valid, ceil                    bool
}

// window reads the attributes for n spatial axes; kernel is that of the
// weights, nil to read kernel_shape.
func (c *call) window(n int, kernel []int64) window {
	w := window{kernel: kernel, stride: c.perAxis("strides", n, 1), dilation: c.perAxis("dilations", n, 1)}
	if kernel == nil {
		if c.node.ints("kernel_shape") == nil {
			c.fail("kernel_shape is missing")
		}
		w.kernel = c.perAxis("kernel_shape", n, 1)
	}
	pads := c.perAxis("pads", 2*n, 0)
	w.begin, w.end = pads[:n], pads[n:]
	switch c.node.string("auto_pad", "NOTSET") {
	case "SAME_UPPER", "SAME_LOWER":
		w.same = true
	case "VALID":
		w.valid = true
	}
	w.ceil = c.node.int("ceil_mode", 0) != 0
	for k := range n {
		if w.kernel[k] < 1 || w.stride[k] < 1 || w.dilation[k] < 1 || w.kernel[k] > maxDim {
			c.fail("kernel %v, strides %v, dilations %v", w.kernel, w.stride, w.dilation)
		}
	}
	return w
}

// slide returns the number of positions on axis k of size in.
func (c *call) slide(w window, k int, in int64) int64 {
	s := w.stride[k]
	if w.same {
		return (in + s - 1) / s
	}
	span := c.mul(w.kernel[k]-1, w.dilation[k]) + 1
	begin, end := w.begin[k], w.end[k]
	if w.valid {
		begin, end = 0, 0
	}
	room := in + begin + end - span
	if room < 0 {
		c.fail("a window of %d does not fit into %d with padding %d and %d", span, in, begin, end)
	}
	n := room/s + 1
	if w.ceil && room%s != 0 && n*s < in+begin {
		n++ // a window that begins inside, if only in the padding before
	}
	return n
}

// slides returns [N,channels,...], the positions of the window on x, [N,C,...].
func (c *call) slides(w window, channels int64, x graph.Shape) graph.Shape {
	out := graph.Shape{x[0], channels}
	for k, d := range x[2:] {
		out = append(out, c.slide(w, k, d))
	}
	return out
}

const none = -1 // the number of an input that an operator does not have

func conv(c *call) { convOf(c, 0, 1, 2, c.elem(0)) }

// convOf infers the convolution of x [N,C,...] with w [M,C/groups,...], and the
// bias [M] where there is one. x, w and bias are the numbers of their inputs.
func convOf(c *call, x, w, bias int, e elem) {
	xs := c.channelsFirst(c.ranked(x, 3, maxRank))
	ws := c.ranked(w, len(xs), len(xs))
	if c.node.key() == "com.microsoft.NhwcConv" || c.node.key() == "com.microsoft.NhwcFusedConv" {
		ws = c.channelsFirst(ws)
	}
	groups := c.node.int("group", 1)
	channels := c.mul(ws[1], max(groups, 0))
	blocks := c.node.domain == "com.microsoft.nchwc" && channels > xs[1] // of which the input does not fill the last
	if groups < 1 || groups > maxDim || channels != xs[1] && !blocks || ws[0]%groups != 0 {
		c.fail("weights %v in %d groups do not fit input %v", ws, groups, xs)
	}
	out := c.slides(c.window(len(xs)-2, ws[2:]), ws[0], xs)
	c.set(0, e, c.asGiven(out))
	c.multiply(groups, c.mul(xs[0], c.product(out[2:])), ws[0]/groups, c.product(ws[1:]))
	if bias != none {
		c.addBias(bias, out)
	}
	if c.kind == "Conv2D" {
		switch {
		case len(xs) == 3:
			c.kind = "Conv1D"
		case len(xs) > 4:
			c.kind = "Conv3D"
		case groups > 1 && ws[1] == 1:
			c.kind = "DepthwiseConv2dNative"
		}
	}
}

// convTranspose: x [N,C,...], w [C,M/groups,...]; every input element is
// multiplied by the whole kernel.
func convTranspose(c *call) {
	xs := c.ranked(0, 3, maxRank)
	ws := c.ranked(1, len(xs), len(xs))
	groups := c.node.int("group", 1)
	if groups < 1 || groups > maxDim || ws[0] != xs[1] || xs[1]%groups != 0 {
		c.fail("weights %v in %d groups do not fit input %v", ws, groups, xs)
	}
	n := len(xs) - 2
	win := c.window(n, ws[2:])
	extra := c.perAxis("output_padding", n, 0)
	out := graph.Shape{xs[0], c.mul(ws[1], groups)}
	for k, d := range xs[2:] {
		span := c.mul(win.kernel[k]-1, win.dilation[k]) + 1
		size := c.mul(max(d-1, 0), win.stride[k]) + extra[k] + span - win.begin[k] - win.end[k]
		switch {
		case win.same:
			size = c.mul(d, win.stride[k])
		case win.valid:
			size = c.mul(max(d-1, 0), win.stride[k]) + extra[k] + span
		}
		out = append(out, size)
	}
	if given := c.node.ints("output_shape"); len(given) == n {
		copy(out[2:], given)
	} else if len(given) == n+2 {
		copy(out[2:], given[2:])
	}
	c.set(0, c.elem(0), out)
	c.multiply(groups, c.mul(xs[0], c.product(xs[2:])), c.product(ws[1:]), ws[0]/groups)
	c.addBias(2, out)
}

// pool: the windows of each channel; an operation for each element of a window.
func pool(c *call) {
	xs := c.channelsFirst(c.ranked(0, 3, maxRank))
	win := c.window(len(xs)-2, nil)
	out := c.slides(win, xs[1], xs)
	c.set(0, c.elem(0), c.asGiven(out))
	c.set(1, elemInt64, c.asGiven(out))
	c.flops = flops(elementsOf(out) * float64(c.product(win.kernel)))
}

func globalPool(c *call) {
	xs := c.channelsFirst(c.ranked(0, 2, maxRank))
	out := append(graph.Shape{}, xs...)
	for k := 2; k < len(out); k++ {
		out[k] = 1
	}
	c.set(0, c.elem(0), c.asGiven(out))
	c.flops = flops(elementsOf(xs))
}

func maxUnpool(c *call) {
	xs := c.ranked(0, 3, maxRank)
	if c.has(2) {
		c.set(0, c.elem(0), c.ints(2))
		return
	}
	win := c.window(len(xs)-2, nil)
	out := graph.Shape{xs[0], xs[1]}
	for k, d := range xs[2:] {
		out = append(out, c.mul(max(d-1, 0), win.stride[k])+win.kernel[k]-win.begin[k]-win.end[k])
	}
	c.set(0, c.elem(0), out)
}

func maxRoiPool(c *call) {
	size := c.perAxis("pooled_shape", 2, 1)
	c.set(0, c.elem(0), graph.Shape{c.ranked(1, 2, 2)[0], c.ranked(0, 4, 4)[1], size[0], size[1]})
}

func roiAlign(c *call) {
	c.set(0, c.elem(0), graph.Shape{c.ranked(1, 2, 2)[0], c.ranked(0, 4, 4)[1], c.node.int("output_height", 1), c.node.int("output_width", 1)})
}

// col2Im: [N, C*block, positions] to [N, C, image...].
func col2Im(c *call) {
	xs, image, block := c.ranked(0, 3, 3), c.ints(1), c.product(c.ints(2))
	if block < 1 {
		c.fail("block shape of %d elements", block)
	}
	c.set(0, c.elem(0), join([]int64{xs[0], xs[1] / block}, image))
}

// elementsOf returns the number of elements of s, for costs.
func elementsOf(s graph.Shape) float64 {
	n := 1.0
	for _, d := range s {
		n *= float64(d)
	}
	return n
}

func flops(x float64) units.FLOPs { return units.FLOPs(x) }
