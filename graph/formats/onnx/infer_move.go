package onnx

import (
	"math"

	"placer/graph"
)

// moveRules are the operators that copy elements to other places.
var moveRules = map[string]rule{
	"Concat": {"Concat", concat}, "com.microsoft.ConcatTraining": {"Concat", concatTraining}, "com.microsoft.QLinearConcat": {"Concat", qlinearConcat}, "Split": {"Split", split}, "com.microsoft.SplitTraining": {"Split", split},
	"Slice": {"Slice", slice}, "Transpose": {"Transpose", transpose}, "Expand": {"Expand", expand}, "Tile": {"Tile", tile}, "Pad": {"Pad", pad}, "com.microsoft.Pad": {"Pad", pad},
	"Resize": {"Resize", resize}, "Upsample": {"Upsample", resize}, "DepthToSpace": {"DepthToSpace", depthToSpace}, "SpaceToDepth": {"SpaceToDepth", spaceToDepth},
	"ReverseSequence": {"ReverseSequence", like}, "CenterCropPad": {"CenterCropPad", centerCropPad}, "Crop": {"Crop", crop}, "OneHot": {"OneHot", oneHot},
}

func concat(c *call) { concatOf(c, 0, 1, c.elem(0)) }

// qlinearConcat: scale and zero point of the result, then each part with its own.
func qlinearConcat(c *call) { concatOf(c, 2, 3, c.elem(1)) }

// concatOf is concat of every so many inputs from the first on, with a result of type e.
func concatOf(c *call, first, every int, e elem) {
	out := append(graph.Shape{}, c.ranked(first, 1, maxRank)...)
	otherwise := int64(0)
	if c.opset() < 4 {
		otherwise = 1
	}
	axis := c.axis(c.node.int("axis", otherwise), len(out))
	for i := first + every; i < len(c.in); i += every {
		s := c.ranked(i, len(out), len(out))
		for k, d := range s {
			if k == axis {
				out[k] += d
			} else if out[k] != d {
				c.fail("input %d is %v, which does not fit %v on axis %d", i, s, c.shape(first), axis)
			}
		}
		if out[axis] > maxDim {
			c.fail("output 0 would be %v", out)
		}
	}
	c.set(0, e, out)
}

// concatTraining also gives the sizes of its inputs on the axis.
func concatTraining(c *call) {
	concat(c)
	c.set(1, elemInt64, graph.Shape{int64(len(c.in))})
}

// split into parts of given sizes, or of equal ones of which the last may be
// smaller.
func split(c *call) {
	s := c.ranked(0, 1, maxRank)
	axis := c.axis(c.node.int("axis", 0), len(s))
	sizes := c.list(1, "split")
	if len(sizes) == 0 {
		n := int64(len(c.out))
		if n == 0 {
			return
		}
		part := (s[axis] + n - 1) / n
		left := s[axis]
		for range n {
			sizes = append(sizes, min(part, left))
			left -= min(part, left)
		}
	}
	if len(sizes) < len(c.out) {
		c.fail("%d sizes for %d outputs", len(sizes), len(c.out))
	}
	total := int64(0)
	for _, d := range sizes {
		if d < 0 || d > maxDim {
			c.fail("parts of %v", sizes)
		}
		total += d
	}
	if total != s[axis] {
		c.fail("parts of %v do not make up %d", sizes, s[axis])
	}
	for k := range c.out {
		c.set(k, c.elem(0), with(s, axis, sizes[k]))
	}
}

// slice: starts, ends, axes and steps as inputs, or the first three as
// attributes.
func slice(c *call) {
	s := c.shape(0)
	starts, ends, axes, steps := c.list(1, "starts"), c.list(2, "ends"), c.list(3, "axes"), c.list(4, "")
	if len(starts) != len(ends) || axes == nil && len(starts) > len(s) || axes != nil && len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		c.fail("slices %v from %v to %v, axes %v, steps %v", s, starts, ends, axes, steps)
	}
	out := append(graph.Shape{}, s...)
	for k := range starts {
		axis, step := k, int64(1)
		if axes != nil {
			axis = c.axis(axes[k], len(s))
		}
		if steps != nil {
			step = steps[k]
		}
		_, out[axis] = c.slicing(s[axis], starts[k], ends[k], step)
	}
	c.set(0, c.elem(0), out)
}

// slicing returns the first index and the count of a slice of n elements.
func (c *call) slicing(n, start, end, step int64) (first, count int64) {
	if step == 0 || step < -maxDim && step != math.MinInt64 {
		c.fail("step %d", step)
	}
	if step == math.MinInt64 {
		step = -maxDim
	}
	clamp := func(x, low, high int64) int64 {
		if x < 0 {
			x += n // cannot overflow: n >= 0
		}
		return min(max(x, low), high)
	}
	if step > 0 {
		start, end = clamp(start, 0, n), clamp(end, 0, n)
		if step > maxDim {
			step = maxDim
		}
		return start, max(0, (end-start+step-1)/step)
	}
	start, end = clamp(start, -1, n-1), clamp(end, -1, n-1)
	return start, max(0, (start-end-step-1)/-step)
}

func transpose(c *call) {
	s := c.shape(0)
	perm := c.node.ints("perm")
	out := make(graph.Shape, len(s))
	if len(perm) == 0 {
		for k := range s {
			out[k] = s[len(s)-1-k]
		}
	} else {
		if len(perm) != len(s) {
			c.fail("perm %v of %v", perm, s)
		}
		c.axes(perm, len(s))
		for k, p := range perm {
			out[k] = s[c.axis(p, len(s))]
		}
	}
	c.set(0, c.elem(0), out)
}

func expand(c *call) {
	c.set(0, c.elem(0), c.broadcast(c.shape(0), append(graph.Shape{}, c.ints(1)...)))
}

// tile: repeats for each axis; operator sets before 6 take a count and an axis.
func tile(c *call) {
	s := c.shape(0)
	repeats := c.ints(1)
	if c.has(2) {
		one := make([]int64, len(s))
		for k := range one {
			one[k] = 1
		}
		one[c.axis(c.scalar(2), len(s))] = c.scalar(1)
		repeats = one
	}
	if len(repeats) != len(s) {
		c.fail("%d repeats for %v", len(repeats), s)
	}
	out := make(graph.Shape, len(s))
	for k, d := range s {
		out[k] = c.mul(d, repeats[k])
	}
	c.set(0, c.elem(0), out)
}

// pad: begins and ends for each axis, or for the axes of input 3.
func pad(c *call) {
	s := c.shape(0)
	pads := c.list(1, "pads")
	if pads == nil {
		pads = c.node.ints("paddings")
	}
	axes := orAll(c.list(3, ""), len(s))
	if len(pads) != 2*len(axes) {
		c.fail("%d pads for %d axes", len(pads), len(axes))
	}
	out := append(graph.Shape{}, s...)
	for k, a := range axes {
		for _, p := range []int64{pads[k], pads[len(axes)+k]} {
			if p < -maxDim || p > maxDim {
				c.fail("pads %v", pads)
			}
			out[c.axis(a, len(s))] += p
		}
	}
	c.set(0, c.elem(0), out)
}

// orAll returns axes or, where they are not named, all of rank dimensions.
func orAll(axes []int64, rank int) []int64 {
	if axes != nil {
		return axes
	}
	for k := range rank {
		axes = append(axes, int64(k))
	}
	return axes
}

// resize: by scales or to sizes, both for all axes or for those named.
func resize(c *call) {
	s := c.shape(0)
	scales, sizes := 1, -1 // inputs of Upsample and of Resize 10
	if len(c.in) > 2 || c.node.op == "Resize" && c.opset() >= 11 {
		scales, sizes = 2, 3
	}
	axes := orAll(c.node.ints("axes"), len(s))
	var factors []float64
	switch {
	case sizes >= 0 && c.has(sizes) && c.in[sizes].elements() != 0:
		c.resizeTo(s, axes, c.ints(sizes))
		return
	case c.has(scales):
		v := c.in[scales].value
		if v == nil {
			c.notConstant(scales)
		}
		for k := range v.len() {
			factors = append(factors, v.at(k))
		}
	default:
		if a := c.node.attr("scales"); a != nil {
			factors = a.floats
		}
	}
	if len(factors) != len(axes) {
		c.fail("%d scales for %d axes", len(factors), len(axes))
	}
	out := append(graph.Shape{}, s...)
	for k, a := range axes {
		x := math.Floor(float64(float32(s[c.axis(a, len(s))]) * float32(factors[k]))) // scales are floats, and runtimes multiply in them
		if !(x >= 0 && x <= maxDim) {
			c.fail("scales %v of %v", factors, s)
		}
		out[c.axis(a, len(s))] = int64(x)
	}
	c.set(0, c.elem(0), out)
}

// resizeTo follows keep_aspect_ratio_policy: stretch, or one factor for all
// axes, the smallest or the largest.
func (c *call) resizeTo(s graph.Shape, axes, sizes []int64) {
	if len(sizes) != len(axes) {
		c.fail("%d sizes for %d axes", len(sizes), len(axes))
	}
	out := append(graph.Shape{}, s...)
	policy := c.node.string("keep_aspect_ratio_policy", "stretch")
	factor := 0.0
	for k, a := range axes {
		f := float64(sizes[k]) / float64(s[c.axis(a, len(s))])
		if k == 0 || policy == "not_larger" && f < factor || policy == "not_smaller" && f > factor {
			factor = f
		}
	}
	for k, a := range axes {
		axis := c.axis(a, len(s))
		out[axis] = sizes[k]
		if policy != "stretch" {
			x := math.Floor(factor*float64(s[axis]) + 0.5)
			if !(x >= 0 && x <= maxDim) {
				c.fail("sizes %v of %v", sizes, s)
			}
			out[axis] = int64(x)
		}
	}
	c.set(0, c.elem(0), out)
}

func depthToSpace(c *call) {
	s, b := c.blocks()
	if s[1]%(b*b) != 0 {
		c.fail("blocks of %d of %v", b, s)
	}
	c.set(0, c.elem(0), graph.Shape{s[0], s[1] / (b * b), c.mul(s[2], b), c.mul(s[3], b)})
}

func spaceToDepth(c *call) {
	s, b := c.blocks()
	c.set(0, c.elem(0), graph.Shape{s[0], c.mul(s[1], b*b), s[2] / b, s[3] / b})
}

// blocks returns the shape of an image and the size of its blocks.
func (c *call) blocks() (s graph.Shape, b int64) {
	s, b = c.ranked(0, 4, 4), c.node.int("blocksize", 1)
	if b < 1 || b > 1<<20 {
		c.fail("blocks of %d of %v", b, s)
	}
	return s, b
}

func centerCropPad(c *call) {
	s, size := c.shape(0), c.ints(1)
	axes := orAll(c.node.ints("axes"), len(s))
	if len(size) != len(axes) {
		c.fail("%d sizes for %d axes", len(size), len(axes))
	}
	out := append(graph.Shape{}, s...)
	for k, a := range axes {
		out[c.axis(a, len(s))] = size[k]
	}
	c.set(0, c.elem(0), out)
}

// crop takes a part of images [N,C,H,W]: border is what goes left, above, right
// and below; scale, where given, is the size [h,w] from the upper left corner of
// what is left (an operator of ONNX before opset 10).
func crop(c *call) {
	s := c.ranked(0, 4, 4)
	border, scale := c.node.ints("border"), c.node.ints("scale")
	if len(border) != 4 || len(scale) != 0 && len(scale) != 2 {
		c.fail("border %v and scale %v: want four numbers, and two or none", border, scale)
	}
	h, w := s[2]-border[1]-border[3], s[3]-border[0]-border[2]
	if len(scale) == 2 {
		if scale[0] > s[2]-border[1] || scale[1] > s[3]-border[0] {
			c.fail("scale %v does not fit what border %v leaves of %v", scale, border, s)
		}
		h, w = scale[0], scale[1]
	}
	if min(h, w, border[0], border[1], border[2], border[3]) < 0 {
		c.fail("border %v and scale %v leave nothing of %v", border, scale, s)
	}
	c.set(0, c.elem(0), graph.Shape{s[0], s[1], h, w})
}

// oneHot: indices, depth, values.
func oneHot(c *call) {
	s := c.shape(0)
	d := c.ints(1)
	if len(d) != 1 {
		c.fail("depth of %d elements", len(d))
	}
	axis := c.axis(c.node.int("axis", -1), len(s)+1)
	c.set(0, c.elem(2), join(s[:axis], d, s[axis:]))
}
