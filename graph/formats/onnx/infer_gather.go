package onnx

import "placer/graph"

// gatherRules are the operators that read or write what indices name. Where the
// count of results depends on the data, the largest possible count is taken.
var gatherRules = map[string]rule{
	"Gather": {"Gather", gather}, "GatherElements": {"GatherElements", gatherElements}, "GatherND": {"GatherND", gatherND},
	"Scatter": {"ScatterElements", like}, "ScatterElements": {"ScatterElements", like}, "ScatterND": {"ScatterND", like}, "TensorScatter": {"ScatterND", like},
	"NonZero": {"NonZero", nonZero}, "Unique": {"Unique", unique}, "Compress": {"Compress", compress}, "NonMaxSuppression": {"NonMaxSuppression", nonMaxSuppression},
	"com.microsoft.GatherBlockQuantized": {"Gather", gatherBlockQuantized},
	"GridSample":                         {"GridSample", gridSample}, "AffineGrid": {"AffineGrid", affineGrid},
}

func gather(c *call) {
	s := c.ranked(0, 1, maxRank)
	k := c.axis(c.node.int("axis", 0), len(s))
	c.set(0, c.elem(0), join(s[:k], c.shape(1), s[k+1:]))
}

// gatherBlockQuantized gathers from data whose elements are small numbers, or bytes of
// which each holds several along the last dimension, and dequantises what it has found:
// data, indices, scales, zero points.
func gatherBlockQuantized(c *call) {
	s := c.ranked(0, 1, maxRank)
	k := c.axis(c.node.int("gather_axis", 0), len(s))
	out, per := join(s[:k], c.shape(1), s[k+1:]), int64(1)
	if k < len(s)-1 && c.elem(0) == elemUint8 {
		per = c.perByte("bits")
		out[len(out)-1] = c.mul(out[len(out)-1], per)
	}
	c.set(0, c.elem(2), out)
	n := c.product(out)
	c.flops = flops(float64(n))
	c.bytes = c.elem(0).bytes(n/per) + c.elem(1).bytes(c.product(c.shape(1))) + c.elem(2).bytes(n)
}

// perByte returns how many weights of as many bits as the attribute says are in a byte.
func (c *call) perByte(bits string) int64 {
	if n := weightsPerByte(c.node, bits); n > 0 {
		return n
	}
	c.fail("%s is %d, want 2, 4 or 8", bits, c.node.int(bits, 4))
	return 0
}

// weightsPerByte is perByte, and 0 where no whole number of them is.
func weightsPerByte(n *node, bits string) int64 {
	switch b := n.int(bits, 4); b {
	case 2, 4, 8:
		return 8 / b
	}
	return 0
}

func gatherElements(c *call) { c.set(0, c.elem(0), c.shape(1)) }

func gatherND(c *call) {
	s, at := c.ranked(0, 1, maxRank), c.ranked(1, 1, maxRank)
	batch, last := c.node.int("batch_dims", 0), at[len(at)-1]
	if batch < 0 || batch >= int64(min(len(s), len(at))) || last < 0 || batch+last > int64(len(s)) {
		c.fail("indices %v of %v with %d batch dimensions", at, s, batch)
	}
	c.set(0, c.elem(0), join(at[:len(at)-1], s[batch+last:]))
}

// nonZero: indices [rank, n].
func nonZero(c *call) {
	s := c.shape(0)
	c.set(0, elemInt64, graph.Shape{int64(max(len(s), 1)), c.product(s)})
}

// unique: the elements or slices that differ, and three lists of indices.
func unique(c *call) {
	s := c.shape(0)
	n := c.product(s)
	out := graph.Shape{n}
	inverse := n
	if c.node.attr("axis") != nil {
		k := c.axis(c.node.int("axis", 0), len(s))
		n, inverse, out = s[k], s[k], s
	}
	c.set(0, c.elem(0), out)
	c.set(1, elemInt64, graph.Shape{n})
	c.set(2, elemInt64, graph.Shape{inverse})
	c.set(3, elemInt64, graph.Shape{n})
}

// compress keeps the slices for which a condition holds, at most as many as
// there are conditions.
func compress(c *call) {
	s := c.shape(0)
	n := c.ranked(1, 1, 1)[0]
	if c.node.attr("axis") == nil {
		c.set(0, c.elem(0), graph.Shape{min(n, c.product(s))})
		return
	}
	k := c.axis(c.node.int("axis", 0), len(s))
	c.set(0, c.elem(0), with(s, k, min(n, s[k])))
}

// nonMaxSuppression: boxes [B,N,4] and scores [B,C,N] to selected [n,3].
func nonMaxSuppression(c *call) {
	boxes, scores := c.ranked(0, 3, 3), c.ranked(1, 3, 3)
	each := boxes[1]
	if v, ok := c.known(2); ok && len(v) == 1 {
		each = min(each, max(v[0], 0))
	}
	c.set(0, elemInt64, graph.Shape{c.mul(c.mul(scores[0], scores[1]), each), 3})
	c.flops = flops(float64(scores[0]) * float64(scores[1]) * float64(each) * float64(boxes[1])) // overlaps of the chosen with all
}

func gridSample(c *call) {
	s := c.ranked(0, 3, maxRank)
	grid := c.ranked(1, len(s), len(s))
	c.set(0, c.elem(0), join(s[:2], grid[1:len(grid)-1]))
}

// affineGrid: theta [N,k,k+1] and size [N,C,D...] to [N,D...,k].
func affineGrid(c *call) {
	size := c.ints(1)
	if len(size) < 3 {
		c.fail("size %v", size)
	}
	c.set(0, c.elem(0), join(size[:1], size[2:], []int64{int64(len(size) - 2)}))
}
